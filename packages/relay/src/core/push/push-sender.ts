import type { OutboundAnswer, OutboundRequest } from "../environment/outbound.ts";
import type { Mail } from "../mailboxes/mailbox-store.ts";
import type { PushOutcome } from "./push-outcome.ts";
import type { PushEndpoint } from "./push-record.ts";

/** One way of calling an agent. There is one for each mode of pushing. */
export interface PushSender {
  /** What is sent; where to, how long and how much of the answer is the same for all. */
  requestOf(
    endpoint: PushEndpoint,
    mail: Mail,
    nowMs: number,
  ): Pick<OutboundRequest, "method" | "headers" | "body">;
  outcomeOf(answer: OutboundAnswer): PushOutcome;
}
