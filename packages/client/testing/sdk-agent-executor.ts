import { randomUUID } from "node:crypto";
import { Artifact, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "@a2a-js/sdk";
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";

/** One turn of work: who asked, what, and where the answer goes. */
interface Turn {
  readonly taskId: string;
  readonly contextId: string;
  readonly text: string;
  readonly history: readonly object[];
  readonly bus: ExecutionEventBus;
}

interface Held {
  readonly contextId: string;
  /** Ends the turn of work that holds the task. */
  readonly release: () => void;
}

/**
 * An agent whose behaviour is the first word of what it is told; what follows is its material:
 * - `stream a b c`: one artifact in as many chunks, the second and later ones appended;
 * - `ask …`: wants input; the next message of the task completes it;
 * - `auth`, `fail …`, `reject …`: ends in that state, with the rest as its message;
 * - `message …`: answers with a plain message, without a task;
 * - `status …`: completes with the answer in the status and no artifact;
 * - `parts`: completes with text, data, a file and a link;
 * - `wait`: works until it is finished by the test or canceled;
 * - `throw …`: the executor itself breaks;
 * - anything else: completes with the artifact `echo: …`.
 */
export class SdkAgentExecutor implements AgentExecutor {
  readonly #held = new Map<string, Held>();
  readonly #asked = new Set<string>();
  /** With which text a task that waits is to be completed. */
  readonly #texts = new Map<string, string>();

  async execute(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { taskId, contextId, userMessage, task } = context;
    // The SDK itself has already put a further message into the history of its task.
    const messages = task?.history ?? [userMessage];
    const history = messages.map((message) => Message.toJSON(message) as object);
    const turn = { taskId, contextId, text: textOfMessage(userMessage), history, bus };
    if (this.#asked.delete(taskId)) {
      begin(turn, "TASK_STATE_WORKING");
      complete(turn, `answered: ${turn.text}`);
    } else {
      await this.#work(turn);
    }
    bus.finished();
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    const held = this.#held.get(taskId);
    setStatus({ taskId, contextId: held?.contextId ?? "", bus }, "TASK_STATE_CANCELED", "canceled");
    held?.release();
  }

  /** Completes a task that was told to `wait`. */
  finish(taskId: string, text: string): void {
    const held = this.#held.get(taskId);
    if (held === undefined) throw new Error(`the task ${taskId} does not wait`);
    this.#texts.set(taskId, text);
    held.release();
  }

  async #work(turn: Turn): Promise<void> {
    const [word = ""] = turn.text.split(" ");
    const rest = turn.text.slice(word.length + 1);
    if (word === "throw") throw new Error(rest);
    if (word === "message") {
      const { contextId, bus } = turn;
      bus.publish(AgentEvent.message(Message.fromJSON({ ...agentMessage(rest), contextId })));
      return;
    }
    begin(turn, "TASK_STATE_SUBMITTED");
    setStatus(turn, "TASK_STATE_WORKING");
    if (word === "wait") return this.#wait(turn);
    if (word === "ask") this.#asked.add(turn.taskId);
    const act = ACTS[word] ?? ((said: Turn) => complete(said, `echo: ${said.text}`));
    act(turn, rest);
  }

  async #wait(turn: Turn): Promise<void> {
    const { taskId, contextId } = turn;
    await new Promise<void>((resolve) => {
      this.#held.set(taskId, { contextId, release: resolve });
    });
    this.#held.delete(taskId);
    const text = this.#texts.get(taskId);
    if (text !== undefined) complete(turn, text);
  }
}

const ACTS: Readonly<Record<string, (turn: Turn, rest: string) => void>> = {
  stream: (turn, rest) => {
    const chunks = rest.split(" ");
    for (const [index, chunk] of chunks.entries()) {
      const isLast = index === chunks.length - 1;
      putArtifact(turn, [{ text: chunk }], { append: index > 0, lastChunk: isLast });
    }
    setStatus(turn, "TASK_STATE_COMPLETED");
  },
  ask: (turn, rest) => setStatus(turn, "TASK_STATE_INPUT_REQUIRED", rest),
  auth: (turn, rest) => setStatus(turn, "TASK_STATE_AUTH_REQUIRED", rest),
  fail: (turn, rest) => setStatus(turn, "TASK_STATE_FAILED", rest),
  reject: (turn, rest) => setStatus(turn, "TASK_STATE_REJECTED", rest),
  status: (turn, rest) => setStatus(turn, "TASK_STATE_COMPLETED", rest),
  parts: (turn) => {
    const parts = [
      { text: "看附件" },
      { data: { answer: 42 } },
      { raw: Buffer.from("文件").toString("base64"), filename: "a.txt", mediaType: "text/plain" },
      { url: "https://example.org/a.png", mediaType: "image/png" },
    ];
    putArtifact(turn, parts);
    setStatus(turn, "TASK_STATE_COMPLETED");
  },
};

function begin({ taskId, contextId, history, bus }: Turn, state: string): void {
  const status = { state, timestamp: new Date().toISOString() };
  bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status, history, artifacts: [] })));
}

function complete(turn: Turn, text: string): void {
  putArtifact(turn, [{ text }]);
  setStatus(turn, "TASK_STATE_COMPLETED");
}

function putArtifact({ taskId, contextId, bus }: Turn, parts: readonly object[], how: object = {}): void {
  const artifact = Artifact.toJSON(Artifact.fromJSON({ artifactId: "answer", name: "answer", parts }));
  const event = { taskId, contextId, artifact, ...how };
  bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(event)));
}

function setStatus(
  { taskId, contextId, bus }: Pick<Turn, "taskId" | "contextId" | "bus">,
  state: string,
  text?: string,
): void {
  const message = text === undefined ? undefined : { ...agentMessage(text), taskId, contextId };
  const status = { state, timestamp: new Date().toISOString(), message };
  bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status })));
}

function agentMessage(text: string): object {
  return { messageId: randomUUID(), role: "ROLE_AGENT", parts: [{ text }] };
}

function textOfMessage(message: Message): string {
  return message.parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join("");
}
