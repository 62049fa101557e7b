import { POSTMASTER } from "@a2a-relay/protocol";
import {
  deliveryActs,
  type Entry,
  entriesOf,
  type NewMessage,
  type LookEntry,
  type Outcome,
  type SendEntry,
} from "./history.ts";
import { groupBy, type Verdict } from "./verdict.ts";

/** Whoever was told "accepted" finds the message whenever they look, word for word. */
export function checkAnsweredSendsKept(entries: readonly Entry[], verdict: Verdict): void {
  const looks = groupBy(entriesOf(entries, "look"), (look) => look.messageId);
  for (const send of answered(entries)) {
    const later = (looks.get(send.messageId ?? "") ?? []).filter((look) => look.start > send.end);
    verdict.expect(
      later.length > 0,
      () => `nobody looked for message ${send.messageId}: ${send.message.body}`,
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
 * never when all were refused, once or never when nobody knows. It holds nothing that nobody wrote.
 */
export function checkAcceptedOnce(entries: readonly Entry[], verdict: Verdict): void {
  const accepted = acceptedByBody(entries, verdict);
  const attempts = attemptsByText(entries);
  for (const [text, tries] of attempts) {
    const count = accepted.get(text)?.length ?? 0;
    const minimum = tries.some((each) => each.outcome === "ok" && each.makesMail) ? 1 : 0;
    const maximum = tries.every((each) => each.outcome === "refused") ? 0 : 1;
    verdict.expect(
      count >= minimum && count <= maximum,
      () => `${text} was tried ${tries.length} times and accepted ${count} times`,
    );
  }
  for (const [body, looks] of accepted) {
    verdict.expect(
      attempts.has(body),
      () => `nobody wrote what is in message ${looks[0]?.messageId}: ${body}`,
    );
  }
}

/** Whoever wrote a message that died has a message that says so. */
export function checkDeadMessagesTell(entries: readonly Entry[], verdict: Verdict): void {
  const last = [...lastLooks(entries).values()].flatMap((look) => (look.found === undefined ? [] : [look]));
  const answers = groupBy(last, (look) => look.found?.replyTo);
  for (const { messageId, found } of last) {
    if (found?.state !== "dead") continue;
    verdict.expect(
      (answers.get(messageId) ?? []).some((look) => look.found?.recipient === found.sender),
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

/** Everything that anybody wrote and that may have become mail. */
function attemptsByText(
  entries: readonly Entry[],
): ReadonlyMap<string, readonly { readonly outcome: Outcome; readonly makesMail: boolean }[]> {
  const tries = [
    ...entriesOf(entries, "send").map(({ message, outcome }) => ({
      text: message.body,
      outcome,
      makesMail: true,
    })),
    ...entriesOf(entries, "finish").map(({ text, outcome }) => ({ text, outcome, makesMail: true })),
    // The sender of a note is told by the postmaster, in other words.
    ...deliveryActs(entries).map(({ text, outcome }) => ({ text, outcome, makesMail: false })),
  ];
  return groupBy(tries, (each) => each.text);
}

function lastLooks(entries: readonly Entry[]): ReadonlyMap<string, LookEntry> {
  return new Map(entriesOf(entries, "look").map((look) => [look.messageId, look]));
}

/** The last look at each message that the journal has, by its body; the relay's own notices left out. */
function acceptedByBody(
  entries: readonly Entry[],
  verdict: Verdict,
): ReadonlyMap<string, readonly LookEntry[]> {
  const looks = lastLooks(entries);
  const ids = entriesOf(entries, "journal")
    .flatMap((journal) => journal.events)
    .filter((event) => event.type === "message.accepted")
    .map((event) => event.messageId ?? "");
  const found: LookEntry[] = [];
  for (const id of ids) {
    const look = looks.get(id);
    verdict.expect(look?.found !== undefined, () => `the journal has message ${id}, the mailbox does not`);
    if (look?.found !== undefined && look.found.sender !== POSTMASTER) found.push(look);
  }
  return groupBy(found, (look) => look.found?.body);
}

function receiptOf(send: SendEntry | undefined): string {
  return `message ${send?.messageId}, thread ${send?.threadId}, task ${send?.taskId}`;
}
