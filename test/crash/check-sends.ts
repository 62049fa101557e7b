import { POSTMASTER } from "@a2a-relay/protocol";
import {
  deliveryActs,
  type Entry,
  entriesOf,
  type NewMessage,
  type FetchEntry,
  type Outcome,
  type SendEntry,
} from "./history.ts";
import { groupBy, type Verdict } from "./verdict.ts";

/** A sender that was told "accepted" can fetch the message at any time, word for word. */
export function checkAnsweredSendsKept(entries: readonly Entry[], verdict: Verdict): void {
  const fetches = groupBy(entriesOf(entries, "fetch"), (fetch) => fetch.messageId);
  for (const send of answered(entries)) {
    const later = (fetches.get(send.messageId ?? "") ?? []).filter((fetch) => fetch.start > send.end);
    verdict.expect(
      later.length > 0,
      () => `no client fetched message ${send.messageId}: ${send.message.body}`,
    );
    for (const { found, start } of later) {
      verdict.expect(
        found !== undefined,
        () => `message ${send.messageId} was answered at ${send.end} and is gone at ${start}`,
      );
      if (found === undefined) continue;
      const { sender, recipient, body } = send.message;
      verdict.expect(
        found.sender === sender && found.recipient === recipient && found.body === body,
        () => `message ${send.messageId} is not what was sent: ${body} became ${found.body}`,
      );
    }
  }
}

/** A retry with the same key, also after a restart, gets the receipt of the first send. */
export function checkSameKeySameReceipt(entries: readonly Entry[], verdict: Verdict): void {
  for (const [key, sends] of groupBy(answered(entries), (send) => keyOf(send.message))) {
    const [first, ...rest] = sends;
    for (const send of rest) {
      verdict.expect(
        send.messageId === first?.messageId &&
          send.threadId === first?.threadId &&
          send.taskId === first?.taskId,
        () => `key ${key} gave ${receiptOf(first)}, then ${receiptOf(send)}`,
      );
      verdict.expect(
        send.message.body === first?.message.body,
        () => `key ${key} was answered for two messages: ${first?.message.body} and ${send.message.body}`,
      );
    }
    const created = sends.filter((send) => send.status === 201).length;
    verdict.expect(created <= 1, () => `key ${key} was new ${created} times`);
  }
}

/**
 * The journal holds each message at most once, however often it was sent: once when any send was answered,
 * never when all were refused, once or never when the outcome is unknown. It holds nothing that no client wrote.
 */
export function checkAcceptedOnce(entries: readonly Entry[], verdict: Verdict): void {
  const accepted = acceptedByBody(entries, verdict);
  const attempts = attemptsByText(entries);
  for (const [text, tries] of attempts) {
    const count = accepted.get(text)?.length ?? 0;
    const minimum = tries.some((each) => each.outcome === "ok" && each.makesMessage) ? 1 : 0;
    const maximum = tries.every((each) => each.outcome === "refused") ? 0 : 1;
    verdict.expect(
      count >= minimum && count <= maximum,
      () => `${text} was tried ${tries.length} times and accepted ${count} times`,
    );
  }
  for (const [body, fetches] of accepted) {
    verdict.expect(
      attempts.has(body),
      () => `no client wrote what is in message ${fetches[0]?.messageId}: ${body}`,
    );
  }
}

/** The sender of a message that died has a message that says so. */
export function checkDeadMessagesTell(entries: readonly Entry[], verdict: Verdict): void {
  const last = [...lastFetches(entries).values()].flatMap((fetch) =>
    fetch.found === undefined ? [] : [fetch],
  );
  const answers = groupBy(last, (fetch) => fetch.found?.replyTo);
  for (const { messageId, found } of last) {
    if (found?.state !== "dead") continue;
    verdict.expect(
      (answers.get(messageId) ?? []).some((fetch) => fetch.found?.recipient === found.sender),
      () => `${found.sender} was not told that message ${messageId} is dead`,
    );
  }
}

/** An atomic batch is accepted as a whole or not at all. */
export function checkAtomicBatches(entries: readonly Entry[], verdict: Verdict): void {
  const accepted = acceptedByBody(entries, verdict);
  const batches = groupBy(entriesOf(entries, "send"), ({ batch }) =>
    batch?.atomic === true ? batch.name : undefined,
  );
  for (const [name, sends] of batches) {
    const bodies = new Set(sends.map((send) => send.message.body));
    const present = [...bodies].filter((body) => accepted.has(body)).length;
    verdict.expect(
      present === 0 || present === bodies.size,
      () => `of the ${bodies.size} messages of the atomic batch ${name}, ${present} were accepted`,
    );
  }
}

export function keyOf({ sender, recipient, key, id }: NewMessage): string | undefined {
  const own = key ?? id;
  return own === undefined ? undefined : `${sender} > ${recipient}: ${own}`;
}

function answered(entries: readonly Entry[]): readonly SendEntry[] {
  return entriesOf(entries, "send").filter((send) => send.outcome === "ok");
}

/** Everything that a client wrote and that may have become a message. */
function attemptsByText(
  entries: readonly Entry[],
): ReadonlyMap<string, readonly { readonly outcome: Outcome; readonly makesMessage: boolean }[]> {
  const tries = [
    ...entriesOf(entries, "send").map(({ message, outcome }) => ({
      text: message.body,
      outcome,
      makesMessage: true,
    })),
    ...entriesOf(entries, "finish").map(({ text, outcome }) => ({ text, outcome, makesMessage: true })),
    // The sender of a note is told by the postmaster, in other words.
    ...deliveryActs(entries).map(({ text, outcome }) => ({ text, outcome, makesMessage: false })),
  ];
  return groupBy(tries, (each) => each.text);
}

function lastFetches(entries: readonly Entry[]): ReadonlyMap<string, FetchEntry> {
  return new Map(entriesOf(entries, "fetch").map((fetch) => [fetch.messageId, fetch]));
}

/** The last fetch of each message that the journal has, by its body; the relay's own notices left out. */
function acceptedByBody(
  entries: readonly Entry[],
  verdict: Verdict,
): ReadonlyMap<string, readonly FetchEntry[]> {
  const fetches = lastFetches(entries);
  const ids = entriesOf(entries, "journal")
    .flatMap((journal) => journal.events)
    .filter((event) => event.type === "message.accepted")
    .map((event) => event.messageId ?? "");
  const found: FetchEntry[] = [];
  for (const id of ids) {
    const fetch = fetches.get(id);
    verdict.expect(fetch?.found !== undefined, () => `the journal has message ${id}, the mailbox does not`);
    if (fetch?.found !== undefined && fetch.found.sender !== POSTMASTER) found.push(fetch);
  }
  return groupBy(found, (fetch) => fetch.found?.body);
}

function receiptOf(send: SendEntry | undefined): string {
  return `message ${send?.messageId}, thread ${send?.threadId}, task ${send?.taskId}`;
}
