import {
  type AgentId,
  type Artifact,
  LIMITS,
  type Part,
  type ResultStatus,
  type TerminalTaskState,
} from "@a2a-relay/protocol";
import type { Changes } from "../ports/relay-store.ts";
import type { EventDraft } from "../ports/journal.ts";
import { digestOf } from "./digest.ts";
import { createMessage, type CreatedMessage, type NewMessage } from "./new-message.ts";
import type { MessageDefaults } from "./notices.ts";
import { taskEvent } from "./task-changes.ts";
import type { A2aMembers, TaskRecord } from "../ports/tasks.ts";
import { moveTask } from "./task-state.ts";
import { saidBy, tellEnd, type Told } from "./task-update.ts";
import { bytesAsJson } from "../mechanisms/stored-json.ts";

/** How a task ends. */
export interface Ending {
  readonly state: TerminalTaskState;
  readonly resultStatus: ResultStatus;
  readonly text: string;
  readonly parts: readonly Part[] | undefined;
  /** Further members of the agent's A2A message. */
  readonly a2aMessage?: A2aMembers | undefined;
  readonly metadata?: A2aMembers | undefined;
  readonly isPlain?: boolean | undefined;
  /** What went wrong, where the result says so beside its content. */
  readonly errorMessage?: string | undefined;
  /** The earlier task whose result this one is ended with. */
  readonly replayOf?: string;
  /** Tells a repeated ending from a different one. */
  readonly digest: string;
  /** Who ended it, as the journal names them. */
  readonly actor: string;
  /** The sender of the result: the agent that worked, or the postmaster where none did. */
  readonly sender: AgentId;
}

export function endingDigest(state: TerminalTaskState, content: unknown): string {
  return digestOf([state, content]);
}

/** The one terminal change of a task together with the one result message to its requester. */
export function endTask(
  task: TaskRecord,
  ending: Ending,
  defaults: MessageDefaults,
  requesterIsRegistered: boolean,
  artifacts: readonly Artifact[],
): { readonly task: TaskRecord; readonly changes: Partial<Changes> } {
  const resultMessageId = requesterIsRegistered ? defaults.ids.message() : null;
  const said = { ...ending, messageId: resultMessageId ?? undefined };
  const { task: ended, changes: told } = endedTask(task, ending, said, defaults.nowMs);
  const event = endingEvent(ended, ending, artifacts);
  const end = {
    ...told,
    tasks: [ended],
    ...(isNews(ending) ? cachedResultOf(ended, ending, artifacts) : {}),
  };
  if (resultMessageId === null) return { task: ended, changes: { ...end, events: [event] } };
  const result = createMessage({
    ...taskMessage(task, defaults),
    id: resultMessageId,
    purpose: "result",
    sender: ending.sender,
    kind: "reply",
    body: ending.text,
    more: {
      ...(ending.parts === undefined ? {} : { parts: ending.parts }),
      task_state: ending.state,
      result_status: ending.resultStatus,
      ...(ending.errorMessage === undefined ? {} : { error_message: ending.errorMessage }),
      ...(ending.replayOf === undefined ? {} : { replay_of: ending.replayOf }),
    },
  });
  return {
    task: ended,
    changes: { ...result.changes, ...end, events: [event, ...result.changes.events] },
  };
}

/** A result that tells of an error beside its content is not remembered, and none is remembered twice. */
function isNews({ errorMessage, replayOf }: Ending): boolean {
  return errorMessage === undefined && replayOf === undefined;
}

/**
 * The result that answers later tasks for the same work. Only success is cached: after a failure the requester wants
 * another try. A result that is too long for a message is not cached.
 */
export function cachedResultOf(
  ended: TaskRecord,
  { text, parts }: Pick<Ending, "text" | "parts">,
  artifacts: readonly Artifact[],
): Pick<Changes, "cachedResults"> {
  const { tenant, id: taskId, resultKey, updatedAtMs: storedAtMs } = ended;
  if (resultKey === null || ended.state !== "completed" || ended.resultStatus !== "ok") return {};
  const content = { text, parts: parts ?? null, artifacts };
  if (bytesAsJson(content) > LIMITS.bodyBytesMax) return {};
  const expiresAtMs = storedAtMs + LIMITS.cachedResultKeptMs;
  return { cachedResults: [{ tenant, resultKey, taskId, ...content, storedAtMs, expiresAtMs }] };
}

/** The message that asks the requester for input or for authorisation. */
export function askRequester(
  task: TaskRecord,
  question: { readonly text: string; readonly parts: readonly Part[] | undefined },
  defaults: MessageDefaults,
): CreatedMessage {
  return createMessage({
    ...taskMessage(task, defaults),
    id: defaults.ids.message(),
    purpose: "mail",
    sender: task.assignee,
    kind: "status",
    body: question.text === "" ? `The task is ${task.state}.` : question.text,
    more: {
      ...(question.parts === undefined ? {} : { parts: question.parts }),
      needs_reply: true,
      task_state: task.state,
    },
  });
}

/** What all messages about a task to its requester have in common. */
function taskMessage(
  task: TaskRecord,
  defaults: MessageDefaults,
): Omit<NewMessage, "id" | "purpose" | "sender" | "kind" | "body" | "more"> {
  return {
    tenant: task.tenant,
    recipient: task.requester,
    subject: `Re: ${task.subject}`.slice(0, LIMITS.subjectCharsMax).toWellFormed(),
    threadId: task.threadId,
    taskId: task.id,
    replyTo: task.messageId,
    acceptedAtMs: defaults.nowMs,
    expiresAtMs: defaults.nowMs + defaults.messageTtlMs,
    duplicateSafety: "idempotent",
    idempotencyKey: undefined,
    quiet: true,
    reservedFor: undefined,
  };
}

/** The task after its end, and the step for its followers; also where the agent's own reply is the result. */
export function endedTask(
  task: TaskRecord,
  ending: Pick<Ending, "state" | "resultStatus" | "text" | "digest" | "isPlain" | "metadata">,
  {
    text,
    parts,
    messageId,
    a2aMessage,
  }: Pick<Ending, "text" | "parts" | "a2aMessage"> & {
    readonly messageId: string | undefined;
  },
  nowMs: number,
): Told {
  const { state, metadata } = ending;
  const ended: TaskRecord = {
    ...moveTask(task, state, nowMs),
    resultStatus: ending.resultStatus,
    resultDigest: ending.digest,
    resultMessageId: messageId ?? null,
    isPlain: ending.isPlain ?? false,
    statusText: ending.text === "" ? null : ending.text.slice(0, STATUS_TEXT_CHARS).toWellFormed(),
  };
  // The requester canceled it and knows why.
  const said = state === "canceled" ? {} : saidBy({ text, parts, messageId, a2aMessage });
  const more = metadata === undefined ? {} : { metadata };
  return tellEnd(ended, [{ kind: "status", state, ...said, ...more }], nowMs);
}

/** Artifacts came without events of their own; one digest at the end vouches for all of them. */
export function endingEvent(
  ended: TaskRecord,
  ending: Pick<Ending, "actor" | "digest" | "replayOf" | "resultStatus">,
  artifacts: readonly Artifact[],
): EventDraft {
  const event = taskEvent(ended, ending.actor, {
    ...(ending.replayOf === undefined ? {} : { replay_of: ending.replayOf }),
    result_status: ending.resultStatus,
    result_message_id: ended.resultMessageId,
    digest: ending.digest,
    ...(artifacts.length === 0 ? {} : { artifacts: artifacts.length, artifacts_digest: digestOf(artifacts) }),
  });
  return ending.replayOf === undefined ? event : { ...event, type: "task.replayed" };
}

/** A task shows the beginning of its last status; the whole text is in the message. */
export const STATUS_TEXT_CHARS = 2_000;
