import { type Entry, entriesOf } from "./history.ts";
import { groupBy, type Verdict } from "./verdict.ts";

/**
 * A webhook is sent again only when the relay cannot know that it arrived: something failed since. What the relay shows
 * as delivered was received, and what was received is kept.
 */
export function checkWebhooks(entries: readonly Entry[], verdict: Verdict): void {
  const received = groupBy(entriesOf(entries, "webhook"), (webhook) => webhook.messageId);
  const fetches = entriesOf(entries, "fetch").filter(({ found }) => found !== undefined);
  const kept = new Set(fetches.map(({ messageId }) => messageId));
  const failures = entriesOf(entries, "kill");
  for (const [messageId, webhooks] of received) {
    verdict.expect(kept.has(messageId), () => `a webhook came of message ${messageId}, which does not exist`);
    for (const [index, second] of webhooks.slice(1).entries()) {
      const first = webhooks[index];
      verdict.expect(
        failures.some((failure) => failure.end > (first?.start ?? 0) && failure.start < second.start),
        () =>
          `the webhook of message ${messageId} came at ${first?.start} and, with no failure, at ${second.start}`,
      );
    }
  }
  for (const { messageId, found } of fetches) {
    if (found?.push !== "delivered") continue;
    verdict.expect(
      received.has(messageId),
      () => `the webhook of message ${messageId} is shown as delivered and was never received`,
    );
  }
}
