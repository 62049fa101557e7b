import {
  type A2aMessage,
  type A2aStatus,
  type A2aTask,
  type Artifact,
  isTerminal,
  LIMITS,
  type Part,
  readTaskState,
  type TaskState,
} from "@a2a-relay/protocol";
import { agentOf, type Principal } from "../access/principal.ts";
import type { RelayStore } from "../environment/relay-store.ts";
import { digestOfText } from "../messages/digest.ts";
import type { TaskRecord } from "../tasks/task-record.ts";
import type { TaskService } from "../tasks/task-service.ts";
import type { RemoteTask } from "./remote-task.ts";
import { listOf, reasonOf, resultOf, wordsOf } from "./remote-words.ts";

/** What was put on record of a task elsewhere. */
export interface Recorded {
  readonly isNews: boolean;
  readonly isOver: boolean;
  readonly statusDigest: string | null;
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
    const { text, ...more } = wordsOf(message);
    await this.#tasks.complete(agentOf(tenant, agentId), taskId, { ...more, text, plain: true });
  }

  /** What an agent says about a task that goes on. */
  async remark(work: Work, message: A2aMessage): Promise<void> {
    const words = wordsOf(message);
    if (words.text === "" && words.parts === undefined) return;
    await this.#tasks.reportStatus(agentOf(work.tenant, work.agentId), work.taskId, {
      state: "working",
      ...words,
    });
  }

  async task(work: Work, ours: TaskRecord, theirs: A2aTask): Promise<Recorded> {
    const hasNewArtifacts = await this.#artifacts(work, theirs);
    const state = readTaskState(theirs.status.state);
    const statusDigest = digestOfStatus(theirs.status);
    const isSame = statusDigest === work.statusDigest;
    if (state === undefined || (isSame && !isTerminal(state))) {
      return { isNews: hasNewArtifacts, isOver: false, statusDigest: work.statusDigest };
    }
    await this.#status(work, ours, theirs, state);
    return { isNews: true, isOver: isTerminal(state), statusDigest };
  }

  async #status(
    { tenant, taskId, agentId }: Work,
    ours: TaskRecord,
    theirs: A2aTask,
    state: TaskState,
  ): Promise<void> {
    const principal: Principal = agentOf(tenant, agentId);
    const words = wordsOf(theirs.status.message);
    const { text: _text, ...more } = words;
    switch (state) {
      case "submitted":
        return;
      case "working": {
        const isSilent = words.text === "" && words.parts === undefined;
        if (isSilent && ours.state === "working") return;
        await this.#tasks.reportStatus(principal, taskId, { state, ...words });
        return;
      }
      case "input-required":
      case "auth-required":
        await this.#tasks.reportStatus(principal, taskId, { state, ...words });
        return;
      case "completed":
        await this.#tasks.complete(principal, taskId, resultOf(theirs));
        return;
      case "rejected": {
        const reason = reasonOf(words, "the agent rejected it and gave no reason");
        await this.#tasks.reject(principal, taskId, { ...more, reason });
        return;
      }
      case "canceled": {
        const reason = reasonOf({ text: `canceled by the remote agent${after(words.text)}` }, "");
        await this.#tasks.fail(principal, taskId, { ...more, reason });
        return;
      }
      default: {
        const reason = reasonOf(words, "the agent failed and gave no reason");
        await this.#tasks.fail(principal, taskId, { ...more, reason });
      }
    }
  }

  /** Those that are new or have changed; of one that has only grown, what it has grown by. */
  async #artifacts({ tenant, taskId, agentId }: Work, { artifacts }: A2aTask): Promise<boolean> {
    const theirs = listOf(artifacts)
      .map(named)
      .filter(({ parts }) => parts.length > 0);
    if (theirs.length === 0) return false;
    const ours = new Map((await this.#store.artifacts(tenant, taskId)).map((one) => [one.artifactId, one]));
    let isNews = false;
    for (const artifact of theirs) {
      for (const piece of piecesOf(ours.get(artifact.artifactId), artifact)) {
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
}

/** What turns our artifact into theirs, in pieces of a size that a request may have. */
function piecesOf(ours: Artifact | undefined, theirs: Artifact): readonly ArtifactPiece[] {
  const isGrown = ours !== undefined && isBeginning(ours, theirs);
  const from = isGrown ? ours.parts.length : 0;
  const pieces: ArtifactPiece[] = [];
  for (let start = from; start < theirs.parts.length; start += LIMITS.partsMax) {
    const parts: readonly Part[] = theirs.parts.slice(start, start + LIMITS.partsMax);
    pieces.push({ artifact: { ...theirs, parts }, append: start > 0 });
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
