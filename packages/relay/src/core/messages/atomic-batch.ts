import { RelayError } from "@a2a-relay/protocol";
import type { Changes } from "../ports/relay-store.ts";
import { keyName } from "./message-draft.ts";

/**
 * Messages that share one commit are planned without seeing each other, so no two of them may write the same
 * thing; tried again, they would clash for ever. `plans` has a gap where a message was sent before.
 */
export function assertIndependent(plans: readonly (Changes | undefined)[]): void {
  const firstBy = new Map<string, number>();
  for (const [index, changes] of plans.entries()) {
    for (const written of changes === undefined ? [] : writtenBy(changes)) {
      const first = firstBy.get(written);
      if (first !== undefined) {
        throw new RelayError(
          "conflict",
          `messages[${index}]: cannot share an atomic batch with messages[${first}], which has or changes the same ${written}; nothing was sent`,
          { details: { index, other: first } },
        );
      }
      firstBy.set(written, index);
    }
  }
}

/** What only one message can write, as an error names it. */
function writtenBy(changes: Changes): ReadonlySet<string> {
  const { sendKeys = [], messages = [], deliveries = [], tasks = [], capabilities = [] } = changes;
  const names = [
    ...sendKeys.map(
      ({ sender, recipient, key }) => `idempotency key "${keyName(key)}" from ${sender} to ${recipient}`,
    ),
    ...messages.map(({ id }) => `message id ${id}`),
    ...tasks.map(({ id }) => `task ${id}`),
    ...deliveries.map(({ messageId }) => `mail ${messageId}`),
    // Only those whose uses are counted are written at all.
    ...capabilities.map(({ id }) => `limited capability ${id}`),
  ];
  return new Set(names);
}
