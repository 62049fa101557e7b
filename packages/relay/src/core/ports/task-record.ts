import type { AgentId, Artifact, HandoffStep, Part, ResultStatus, TaskState } from "@a2a-relay/protocol";

/** The work that a request or handoff asks for. */
export interface TaskRecord {
  readonly tenant: string;
  readonly id: string;
  readonly requester: AgentId;
  readonly assignee: AgentId;
  readonly state: TaskState;
  readonly threadId: string;
  /** The message that asked for it, or that handed it over last: its receipts show the work. */
  readonly messageId: string;
  readonly subject: string;
  /** The id that its requester gave it on a wire where clients name tasks. */
  readonly clientId: string | null;
  /** Under which an `ok` result is remembered for later tasks; null for work that is not idempotent. */
  readonly resultKey: string | null;
  readonly parentId: string | null;
  readonly deadlineMs: number | null;
  readonly statusText: string | null;
  readonly resultStatus: ResultStatus | null;
  readonly resultMessageId: string | null;
  /** Compares a repeated completion with the accepted one. */
  readonly resultDigest: string | null;
  readonly handoffs: readonly HandoffStep[];
  /** The message that asked for it first, where it was handed over since. */
  readonly firstMessageId: string | null;
  /** The agent that was asked over A2A, which its caller goes on asking about it, whoever works on it. */
  readonly askedOf: AgentId | null;
  /** It was answered with a plain message: an A2A caller sees that instead of a task. */
  readonly isPlain: boolean;
  /** How many steps those who follow it were shown, and their bytes as JSON. */
  readonly updateCount: number;
  readonly updateBytes: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly version: number;
}

export interface ArtifactRecord {
  readonly tenant: string;
  readonly taskId: string;
  readonly artifact: Artifact;
}

/** What answered an idempotent task, kept to answer the same task again without doing it twice. */
export interface CachedResult {
  readonly tenant: string;
  readonly resultKey: string;
  readonly taskId: string;
  readonly text: string;
  readonly parts: readonly Part[] | null;
  readonly artifacts: readonly Artifact[];
  readonly storedAtMs: number;
  readonly expiresAtMs: number;
}
