import { type AgentId, RelayError } from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { deliveryEvent } from "../rules/task-changes.ts";
import type { MailboxMessage } from "../ports/deliveries.ts";

/** What of the mail was never seen before. */
export function unreadIn(mail: readonly MailboxMessage[]): readonly string[] {
  return mail
    .filter(({ delivery }) => delivery.deliveredAtMs === null)
    .map(({ delivery }) => delivery.messageId);
}

/** Notes that the agent was there and saw this mail for the first time. */
export async function markDelivered(
  { store, clock }: { readonly store: RelayStore; readonly clock: Clock },
  tenant: string,
  agentId: AgentId,
  unread: readonly string[],
): Promise<void> {
  const nowMs = clock.nowMs();
  await store.touchAgent(tenant, agentId, nowMs);
  if (unread.length === 0) return;
  try {
    await store.markDelivered(tenant, unread, nowMs, (delivery) =>
      deliveryEvent("message.delivered", delivery, agentId, nowMs, {}),
    );
  } catch (reason) {
    // A full disk keeps nobody from reading: the mark can come with a later read.
    if (RelayError.from(reason).code !== "storage_full") throw reason;
  }
}
