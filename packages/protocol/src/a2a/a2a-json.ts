import type { Artifact, Part } from "../model/part.ts";

/**
 * A2A 1.0 as JSON. The relay reads only the members that it needs: unknown members stay, and parts are carried as they
 * were written, in any dialect.
 */
export const A2A_STATES = [
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_AUTH_REQUIRED",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
] as const;
export type A2aState = (typeof A2A_STATES)[number];

export type A2aRole = "ROLE_USER" | "ROLE_AGENT";

/** Unknown members are kept. */
interface Open {
  readonly [member: string]: unknown;
}

export interface A2aMessage extends Open {
  readonly messageId: string;
  readonly role: A2aRole;
  readonly parts: readonly Part[];
  readonly contextId?: string;
  readonly taskId?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface A2aStatus extends Open {
  readonly state: A2aState;
  /** ISO 8601, UTC, milliseconds. */
  readonly timestamp?: string;
  readonly message?: A2aMessage;
}

export interface A2aTask extends Open {
  readonly id: string;
  readonly contextId: string;
  readonly status: A2aStatus;
  readonly artifacts?: readonly Artifact[];
  readonly history?: readonly A2aMessage[];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface A2aStatusUpdate extends Open {
  readonly taskId: string;
  readonly contextId: string;
  readonly status: A2aStatus;
}

export interface A2aArtifactUpdate extends Open {
  readonly taskId: string;
  readonly contextId: string;
  readonly artifact: Artifact;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
}

/** The answer to a send: one of the two. */
export type A2aSendResult =
  | { readonly task: A2aTask; readonly message?: undefined }
  | { readonly message: A2aMessage; readonly task?: undefined };

/** An event of a stream: one of the four. */
export interface A2aStreamResponse {
  readonly task?: A2aTask;
  readonly message?: A2aMessage;
  readonly statusUpdate?: A2aStatusUpdate;
  readonly artifactUpdate?: A2aArtifactUpdate;
}

export interface A2aTaskList {
  readonly tasks: readonly A2aTask[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
  readonly pageSize: number;
  readonly totalSize: number;
}

export interface A2aPushConfig extends Open {
  readonly id: string;
  readonly taskId: string;
  readonly url: string;
  readonly token?: string;
  readonly authentication?: { readonly scheme: string; readonly credentials?: string };
}
