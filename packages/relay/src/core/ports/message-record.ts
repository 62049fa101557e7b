import type { AgentId, MessageKind } from "@a2a-relay/protocol";

/** A message as it is kept: `json` is the a2a.v1 text and the truth, the rest are its indexed fields. */
export interface MessageRecord {
  readonly tenant: string;
  readonly id: string;
  readonly sender: AgentId;
  readonly recipient: AgentId;
  readonly kind: MessageKind;
  readonly threadId: string;
  readonly taskId: string | null;
  readonly acceptedAtMs: number;
  readonly json: string;
}

/** Remembers a send for longer than its message, so that a late retry is still recognised. */
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
