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
import type { Claim } from "../ports/claims.ts";
import { RemoteFailure } from "../ports/outbound.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import type { RemoteTask } from "../ports/remote-tasks.ts";
import type { TaskRecord } from "../ports/tasks.ts";
import { digestOfText } from "../rules/digest.ts";
import type { TaskService } from "../tasks/task-service.ts";
import { contentOf, isSilent, listOf, reasonOf, resultOf, unrecordedMessages } from "./remote-content.ts";
import { isSameJson, toStoredJson } from "../mechanisms/stored-json.ts";

export interface RecordedTask {
  readonly isNews: boolean;
  readonly isOver: boolean;
  readonly statusDigest: string | null;
}

/** The agent's task is in a state that A2A does not have. */
export class UnknownState extends RemoteFailure {
  constructor(state: unknown) {
    super("failed", `the agent says that its task is in the state ${quote(state)}, which A2A does not know`);
  }
}

/** The status is recorded, the artifacts are not. */
export class HalfRecorded extends Error {
  override readonly name: string = "HalfRecorded";
  readonly statusDigest: string;

  constructor(statusDigest: string, cause: unknown) {
    super("what the agent made could not be put on record", { cause });
    this.statusDigest = statusDigest;
  }
}

/** A remote task with the claim under which it was polled. */
export interface PolledTask extends RemoteTask {
  readonly claim: Claim;
}

/**
 * Copies the state of a remote task to ours, acting as the agent that has it. Compares with what is recorded, so that a
 * repeated call changes nothing. Once the claim is lost, it writes nothing more (`ClaimLost`).
 */
export class RemoteRecord {
  readonly #store: RelayStore;
  readonly #tasks: TaskService;

  constructor(parts: { readonly store: RelayStore; readonly tasks: TaskService }) {
    this.#store = parts.store;
    this.#tasks = parts.tasks;
  }

  /** An agent that answers with a message has completed the task. */
  async message({ tenant, taskId, agentId, claim }: PolledTask, message: A2aMessage): Promise<void> {
    const { text, ...more } = contentOf(message);
    const completion = { ...more, text, plain: true };
    await this.#tasks.under(claim).complete(agentOf(tenant, agentId), taskId, completion);
  }

  /** A message about a task that goes on. */
  async remark(remote: PolledTask, message: A2aMessage): Promise<void> {
    const content = contentOf(message);
    if (isSilent(content)) return;
    await this.#reportWorking(remote, content);
  }

  /** Records artifacts after a status that goes on, and before one that ends the task. */
  async task(remote: PolledTask, ours: TaskRecord, theirs: A2aTask): Promise<RecordedTask> {
    const state = readTaskState(theirs.status.state);
    if (state === undefined) {
      await this.#artifacts(remote, theirs, { isEnd: false });
      throw new UnknownState(theirs.status.state);
    }
    const statusDigest = digestOfStatus(theirs.status);
    const isSame = statusDigest === remote.statusDigest;
    const hasSaid = await this.#history(remote, ours, theirs, { state, isSame });
    const now: TaskRecord = hasSaid ? { ...ours, state: "working" } : ours;
    if (isTerminal(state)) {
      await this.#artifacts(remote, theirs, { isEnd: true });
      await this.#status(remote, now, theirs, state);
      return { isNews: true, isOver: true, statusDigest };
    }
    if (!isSame) await this.#status(remote, now, theirs, state);
    try {
      const hasMade = await this.#artifacts(remote, theirs, { isEnd: false });
      return { isNews: hasMade || hasSaid || !isSame, isOver: false, statusDigest };
    } catch (reason) {
      throw new HalfRecorded(statusDigest, reason);
    }
  }

  /** Old messages must not set a waiting task back to `working`. */
  async #history(
    remote: PolledTask,
    ours: TaskRecord,
    theirs: A2aTask,
    { state, isSame }: { readonly state: TaskState; readonly isSame: boolean },
  ): Promise<boolean> {
    if (state === "submitted" || (isSame && state !== "working" && !isTerminal(state))) return false;
    const said = await unrecordedMessages(this.#store, ours, theirs, state);
    for (const content of said) await this.#reportWorking(remote, content);
    return said.length > 0;
  }

  async #reportWorking({ tenant, taskId, agentId, claim }: PolledTask, content: object): Promise<void> {
    const status = { state: "working", ...content };
    await this.#tasks.under(claim).reportStatus(agentOf(tenant, agentId), taskId, status);
  }

  async #status(
    { tenant, taskId, agentId, claim }: PolledTask,
    ours: TaskRecord,
    theirs: A2aTask,
    state: TaskState,
  ): Promise<void> {
    const tasks = this.#tasks.under(claim);
    const principal: Principal = agentOf(tenant, agentId);
    const content = contentOf(theirs.status.message);
    const { text: _text, ...more } = content;
    switch (state) {
      case "submitted":
        return;
      case "working": {
        if (isSilent(content) && ours.state === "working") return;
        await tasks.reportStatus(principal, taskId, { state, ...content });
        return;
      }
      case "input-required":
      case "auth-required":
        await tasks.reportStatus(principal, taskId, { state, ...content });
        return;
      case "completed":
        await tasks.complete(principal, taskId, resultOf(theirs));
        return;
      case "rejected": {
        const reason = reasonOf(content, "the agent rejected it and gave no reason");
        await tasks.reject(principal, taskId, { ...more, reason });
        return;
      }
      case "canceled": {
        const reason = reasonOf({ text: `canceled by the remote agent${after(content.text)}` }, "");
        await tasks.fail(principal, taskId, { ...more, reason });
        return;
      }
      default: {
        const reason = reasonOf(content, "the agent failed and gave no reason");
        await tasks.fail(principal, taskId, { ...more, reason });
      }
    }
  }

  /** Records new and changed artifacts; of one that only grew, its new parts. */
  async #artifacts(
    { tenant, taskId, agentId, claim }: PolledTask,
    { artifacts }: A2aTask,
    { isEnd }: { readonly isEnd: boolean },
  ): Promise<boolean> {
    const theirs = listOf(artifacts)
      .map(named)
      .filter(({ parts }) => parts.length > 0);
    if (theirs.length === 0) return false;
    const ours = new Map(
      (await this.#store.tasks.artifacts(tenant, taskId)).map((one) => [one.artifactId, one]),
    );
    let isNews = false;
    for (const artifact of theirs) {
      for (const piece of piecesOf(ours.get(artifact.artifactId), artifact, isEnd)) {
        await this.#tasks.under(claim).addArtifact(agentOf(tenant, agentId), taskId, piece);
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
 * The pieces that make our artifact equal to theirs, each of at most `LIMITS.partsMax` parts. An artifact may grow
 * until the task ends.
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

/** Whether theirs is ours with more parts at its end. */
function isBeginning({ parts: before, ...ours }: Artifact, { parts, ...theirs }: Artifact): boolean {
  if (before.length > parts.length || !isSameJson(ours, theirs)) return false;
  return isSameJson(before, parts.slice(0, before.length));
}

/** Replaces an absent or too long id. The fixed order of members makes the JSON comparable. */
function named({ artifactId, parts, ...more }: Artifact, index: number): Artifact {
  const isName =
    typeof artifactId === "string" && artifactId !== "" && artifactId.length <= LIMITS.idCharsMax;
  return { artifactId: isName ? artifactId : `artifact-${index + 1}`, ...more, parts: listOf(parts) };
}

/** Some agents send a new timestamp with every poll, so it counts only where there is no message id. */
function digestOfStatus({ state, message, timestamp }: A2aStatus): string {
  const said = message === undefined || message === null ? undefined : [message.messageId, message.parts];
  const isTold = typeof message?.messageId === "string";
  const when = isTold || readTaskState(state) === "working" ? undefined : timestamp;
  return digestOfText(toStoredJson([readTaskState(state), said, when]));
}

function after(text: string): string {
  return text === "" ? "" : `: ${text}`;
}
