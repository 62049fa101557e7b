import {
  type A2aMessage,
  type A2aStatus,
  type A2aTask,
  type Artifact,
  isTerminal,
  LIMITS,
  type Part,
  quote,
  readTaskState,
  type TaskState,
} from "@a2a-relay/protocol";
import { agentOf, type Principal } from "../access/principal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { digestOfText } from "../rules/digest.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import type { TaskService } from "../tasks/task-service.ts";
import { RemoteFailure } from "./remote-calls.ts";
import { contentOf, isSilent, listOf, reasonOf, resultOf, saidBetween } from "./remote-content.ts";
import type { RemoteTask } from "../ports/remote-tasks.ts";

/** What was put on record of a task elsewhere. */
export interface Recorded {
  readonly isNews: boolean;
  readonly isOver: boolean;
  readonly statusDigest: string | null;
}

/** The agent names a state that says nothing of what became of the task. */
export class UnknownState extends RemoteFailure {
  constructor(state: unknown) {
    super("failed", `the agent says that its task is in the state ${quote(state)}, which A2A does not know`);
  }
}

/** The status is on record, and what was made is not. */
export class HalfRecorded extends Error {
  override readonly name: string = "HalfRecorded";
  readonly statusDigest: string;

  constructor(statusDigest: string, cause: unknown) {
    super("what the agent made could not be put on record", { cause });
    this.statusDigest = statusDigest;
  }
}

type Work = Pick<RemoteTask, "tenant" | "taskId" | "agentId" | "statusDigest">;

/**
 * Puts on record of our task what an agent elsewhere says of its own, as that agent would do itself. It is compared
 * with what is there already, so that doing it twice does no harm.
 */
export class RemoteRecord {
  readonly #store: RelayStore;
  readonly #tasks: TaskService;

  constructor(parts: { readonly store: RelayStore; readonly tasks: TaskService }) {
    this.#store = parts.store;
    this.#tasks = parts.tasks;
  }

  /** An agent that answers with a message has done all there was to do. */
  async message({ tenant, taskId, agentId }: Work, message: A2aMessage): Promise<void> {
    const { text, ...more } = contentOf(message);
    await this.#tasks.complete(agentOf(tenant, agentId), taskId, { ...more, text, plain: true });
  }

  /** What an agent says about a task that goes on. */
  async remark(work: Work, message: A2aMessage): Promise<void> {
    const content = contentOf(message);
    if (isSilent(content)) return;
    await this.#tasks.reportStatus(agentOf(work.tenant, work.agentId), work.taskId, {
      state: "working",
      ...content,
    });
  }

  /** In the order in which it can have happened: what is made is made after a status, and before the end. */
  async task(work: Work, ours: TaskRecord, theirs: A2aTask): Promise<Recorded> {
    const state = readTaskState(theirs.status.state);
    if (state === undefined) {
      await this.#artifacts(work, theirs, { isEnd: false });
      throw new UnknownState(theirs.status.state);
    }
    const statusDigest = digestOfStatus(theirs.status);
    const isSame = statusDigest === work.statusDigest;
    const hasSaid = await this.#between(work, ours, theirs, { state, isSame });
    const now: TaskRecord = hasSaid ? { ...ours, state: "working" } : ours;
    if (isTerminal(state)) {
      await this.#artifacts(work, theirs, { isEnd: true });
      await this.#status(work, now, theirs, state);
      return { isNews: true, isOver: true, statusDigest };
    }
    if (!isSame) await this.#status(work, now, theirs, state);
    try {
      const hasMade = await this.#artifacts(work, theirs, { isEnd: false });
      return { isNews: hasMade || hasSaid || !isSame, isOver: false, statusDigest };
    } catch (reason) {
      throw new HalfRecorded(statusDigest, reason);
    }
  }

  /** A task that waits does not go on because of what was said before. */
  async #between(
    work: Work,
    ours: TaskRecord,
    theirs: A2aTask,
    { state, isSame }: { readonly state: TaskState; readonly isSame: boolean },
  ): Promise<boolean> {
    if (state === "submitted" || (isSame && state !== "working" && !isTerminal(state))) return false;
    const said = await saidBetween(this.#store, ours, theirs, state);
    for (const content of said) {
      const status = { state: "working", ...content };
      await this.#tasks.reportStatus(agentOf(work.tenant, work.agentId), work.taskId, status);
    }
    return said.length > 0;
  }

  async #status(
    { tenant, taskId, agentId }: Work,
    ours: TaskRecord,
    theirs: A2aTask,
    state: TaskState,
  ): Promise<void> {
    const principal: Principal = agentOf(tenant, agentId);
    const content = contentOf(theirs.status.message);
    const { text: _text, ...more } = content;
    switch (state) {
      case "submitted":
        return;
      case "working": {
        if (isSilent(content) && ours.state === "working") return;
        await this.#tasks.reportStatus(principal, taskId, { state, ...content });
        return;
      }
      case "input-required":
      case "auth-required":
        await this.#tasks.reportStatus(principal, taskId, { state, ...content });
        return;
      case "completed":
        await this.#tasks.complete(principal, taskId, resultOf(theirs));
        return;
      case "rejected": {
        const reason = reasonOf(content, "the agent rejected it and gave no reason");
        await this.#tasks.reject(principal, taskId, { ...more, reason });
        return;
      }
      case "canceled": {
        const reason = reasonOf({ text: `canceled by the remote agent${after(content.text)}` }, "");
        await this.#tasks.fail(principal, taskId, { ...more, reason });
        return;
      }
      default: {
        const reason = reasonOf(content, "the agent failed and gave no reason");
        await this.#tasks.fail(principal, taskId, { ...more, reason });
      }
    }
  }

  /** Those that are new or have changed; of one that has only grown, what it has grown by. */
  async #artifacts(
    { tenant, taskId, agentId }: Work,
    { artifacts }: A2aTask,
    { isEnd }: { readonly isEnd: boolean },
  ): Promise<boolean> {
    const theirs = listOf(artifacts)
      .map(named)
      .filter(({ parts }) => parts.length > 0);
    if (theirs.length === 0) return false;
    const ours = new Map((await this.#store.artifacts(tenant, taskId)).map((one) => [one.artifactId, one]));
    let isNews = false;
    for (const artifact of theirs) {
      for (const piece of piecesOf(ours.get(artifact.artifactId), artifact, isEnd)) {
        await this.#tasks.addArtifact(agentOf(tenant, agentId), taskId, piece);
        isNews = true;
      }
    }
    return isNews;
  }
}

interface ArtifactPiece {
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly last_chunk: boolean;
}

/**
 * What turns our artifact into theirs, in pieces of a size that a request may have. As long as the agent has not come
 * to its end, every artifact may grow.
 */
function piecesOf(ours: Artifact | undefined, theirs: Artifact, isEnd: boolean): readonly ArtifactPiece[] {
  const isGrown = ours !== undefined && isBeginning(ours, theirs);
  const from = isGrown ? ours.parts.length : 0;
  const pieces: ArtifactPiece[] = [];
  for (let start = from; start < theirs.parts.length; start += LIMITS.partsMax) {
    const end = start + LIMITS.partsMax;
    const parts: readonly Part[] = theirs.parts.slice(start, end);
    const isLast = isEnd && end >= theirs.parts.length;
    pieces.push({ artifact: { ...theirs, parts }, append: start > 0, last_chunk: isLast });
  }
  return pieces;
}

/** The same but for parts that have come behind. */
function isBeginning({ parts: before, ...ours }: Artifact, { parts, ...theirs }: Artifact): boolean {
  if (before.length > parts.length || JSON.stringify(ours) !== JSON.stringify(theirs)) return false;
  return JSON.stringify(before) === JSON.stringify(parts.slice(0, before.length));
}

/** Some agents give their artifacts no names, or such as nobody else could keep. Members are in a fixed order. */
function named({ artifactId, parts, ...more }: Artifact, index: number): Artifact {
  const isName =
    typeof artifactId === "string" && artifactId !== "" && artifactId.length <= LIMITS.idCharsMax;
  return { artifactId: isName ? artifactId : `artifact-${index + 1}`, ...more, parts: listOf(parts) };
}

/** Their clock may tick with each look; only where nothing else tells two questions apart does it count. */
function digestOfStatus({ state, message, timestamp }: A2aStatus): string {
  const said = message === undefined || message === null ? undefined : [message.messageId, message.parts];
  const isTold = typeof message?.messageId === "string";
  const when = isTold || readTaskState(state) === "working" ? undefined : timestamp;
  return digestOfText(JSON.stringify([readTaskState(state), said, when]));
}

function after(text: string): string {
  return text === "" ? "" : `: ${text}`;
}
