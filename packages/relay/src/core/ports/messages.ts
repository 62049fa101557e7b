import type { AgentId, MessageKind } from "@a2a-relay/protocol";
import type { DeliveryRecord } from "./deliveries.ts";
import type { StoredJson } from "./stored-json.ts";

/** A stored message: `json` is the a2a.v1 text and the truth, the rest are its indexed fields. */
export interface MessageRecord {
  readonly tenant: string;
  readonly id: string;
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly kind: MessageKind;
  readonly threadId: string;
  readonly taskId: string | null;
  readonly acceptedAtMs: number;
  readonly json: StoredJson;
}

/** Outlives its message, so that the relay still recognises a late retry. */
export interface SendKey {
  readonly tenant: string;
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly key: string;
  readonly digest: string;
  readonly messageId: string;
  readonly threadId: string;
  readonly taskId: string | null;
}

export interface ThreadSummary {
  readonly threadId: string;
  readonly lastPosition: number;
  readonly messageCount: number;
  readonly openCount: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly participants: readonly string[];
  /** Of its first message. */
  readonly subject: string;
}

export interface ThreadMessage {
  readonly message: MessageRecord;
  readonly delivery: DeliveryRecord | undefined;
}

export interface ThreadQuery {
  readonly tenant: string;
  readonly threadId: string;
  readonly limit: number;
  /** The limit for all messages of one answer, as JSON. The first one comes whatever its length. */
  readonly bytesMax: number;
}

export interface ThreadPage {
  readonly messages: readonly ThreadMessage[];
  readonly hasMore: boolean;
}

export interface MessageStore {
  /** As many as ids, in their order. */
  get(tenant: string, ids: readonly string[]): Promise<readonly (MessageRecord | undefined)[]>;
  sendKey(tenant: string, sender: AgentId, recipient: AgentId, key: string): Promise<SendKey | undefined>;
  /** The messages of a thread, in the order they were accepted, up to the first that does not fit. */
  thread(query: ThreadQuery): Promise<ThreadPage>;
  /**
   * Threads by their newest message, newest first, before `beforePosition`. Walks at most `scanRowsMax`
   * messages, those of each thread it reads included, though never less than one thread;
   * `nextPosition` is where to go on, or undefined at the end.
   */
  threads(query: {
    readonly tenant: string;
    readonly agent: AgentId | undefined;
    readonly beforePosition: number;
    readonly limit: number;
    readonly scanRowsMax: number;
  }): Promise<{ readonly threads: readonly ThreadSummary[]; readonly nextPosition: number | undefined }>;
}
