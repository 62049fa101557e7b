import { type DeliveryState, isSettled } from "@a2a-relay/protocol";
import { deliveryActs, type Entry, entriesOf, type ReadEntry, type SendEntry } from "./history.ts";
import { groupBy, type Verdict } from "./verdict.ts";

/** A settled delivery is never handed out again, and its final state does not change. */
export function checkSettledStaysSettled(entries: readonly Entry[], verdict: Verdict): void {
  const settledAt = settlements(entries);
  const handedOut = [
    ...entriesOf(entries, "read").map(({ act, start, deliveries }) => ({ act, start, deliveries })),
    ...entriesOf(entries, "lease").map(({ act, start, grants }) => ({ act, start, deliveries: grants })),
  ];
  for (const { act, start, deliveries } of handedOut) {
    for (const { messageId } of deliveries) {
      const end = settledAt.get(messageId)?.end;
      verdict.expect(
        end === undefined || end > start,
        () => `message ${messageId} was settled at ${end} and came back by a ${act} at ${start}`,
      );
    }
  }
  for (const { messageId, found, start } of entriesOf(entries, "fetch")) {
    const settled = settledAt.get(messageId);
    if (settled === undefined || settled.end > start || found === undefined) continue;
    verdict.expect(
      settled.states.includes(found.state),
      () => `message ${messageId} was ${settled.states.join(" or ")} and is ${found.state} now`,
    );
  }
}

/** Messages of one sender to one recipient are read in the order of their acceptance. */
export function checkOrder(entries: readonly Entry[], verdict: Verdict): void {
  const positions = new Map(
    entriesOf(entries, "journal")
      .flatMap((journal) => journal.events)
      .filter((event) => event.type === "message.accepted")
      .map((event) => [event.messageId ?? "", event.seq]),
  );
  for (const read of entriesOf(entries, "read")) {
    for (const [sender, deliveries] of groupBy(read.deliveries, (item) => item.sender)) {
      const order = deliveries.map((item) => positions.get(item.messageId) ?? Number.NaN);
      verdict.expect(
        order.every((position, index) => index === 0 || position > (order[index - 1] ?? 0)),
        () => `${read.mailbox} got messages of ${sender} out of order: ${order.join(", ")}`,
      );
    }
  }
  checkJournalOrder(entries, positions, verdict);
}

/**
 * A read that was not cut short shows every message that was answered before it began and that no client
 * settled; with a cursor, every such message that was sent after the read that gave the cursor.
 */
export function checkOpenDeliveriesShown(entries: readonly Entry[], verdict: Verdict): void {
  const touched = firstSettling(entries);
  const messages = groupBy(answeredOnce(entries), (send) => send.message.recipient);
  for (const [mailbox, reads] of groupBy(entriesOf(entries, "read"), (read) => read.mailbox)) {
    const coming = (messages.get(mailbox) ?? []).toSorted((one, other) => other.end - one.end);
    let open: SendEntry[] = [];
    for (const read of reads.toSorted((one, other) => one.start - other.start)) {
      while ((coming.at(-1)?.end ?? Number.POSITIVE_INFINITY) < read.start) open.push(...coming.splice(-1));
      open = open.filter(
        (send) => (touched.get(send.messageId ?? "") ?? Number.POSITIVE_INFINITY) > read.start,
      );
      if (read.outcome === "ok" && read.deliveries.length < read.limit)
        checkRead(read, open, touched, verdict);
    }
  }
}

function checkRead(
  read: ReadEntry,
  open: readonly SendEntry[],
  touched: ReadonlyMap<string, number>,
  verdict: Verdict,
): void {
  const shown = new Set(read.deliveries.map((item) => item.messageId));
  for (const { messageId = "", start } of open) {
    const before = read.cursorFrom !== undefined && start < read.cursorFrom;
    if (before || (touched.get(messageId) ?? Number.POSITIVE_INFINITY) < read.end) continue;
    verdict.expect(
      shown.has(messageId),
      () => `${read.mailbox} read its mailbox at ${read.start} and did not get message ${messageId}`,
    );
  }
}

/** Real time and the journal agree: what was answered before another message was sent was accepted before. */
function checkJournalOrder(
  entries: readonly Entry[],
  positions: ReadonlyMap<string, number>,
  verdict: Verdict,
): void {
  const pairs = groupBy(answeredOnce(entries), ({ message }) => `${message.sender} > ${message.recipient}`);
  for (const [pair, sends] of pairs) {
    const byStart = sends.toSorted((one, other) => one.start - other.start);
    const byEnd = sends.toSorted((one, other) => one.end - other.end);
    let latest = { position: 0, messageId: "" };
    let ended = 0;
    for (const send of byStart) {
      for (; (byEnd[ended]?.end ?? Number.POSITIVE_INFINITY) < send.start; ended += 1) {
        const messageId = byEnd[ended]?.messageId ?? "";
        const position = positions.get(messageId) ?? 0;
        if (position > latest.position) latest = { position, messageId };
      }
      const position = positions.get(send.messageId ?? "") ?? 0;
      verdict.expect(
        position > latest.position,
        () => `${pair}: message ${send.messageId} was sent after ${latest.messageId} and accepted before it`,
      );
    }
  }
}

/** Answered sends of messages that were tried once, so that what happened when is known. */
function answeredOnce(entries: readonly Entry[]): readonly SendEntry[] {
  const attempts = groupBy(entriesOf(entries, "send"), (send) => send.message.body);
  return [...attempts.values()]
    .filter((sends) => sends.length === 1)
    .flat()
    .filter((send) => send.outcome === "ok");
}

/** When each message was first known to be settled, and the states that are possible since. */
function settlements(
  entries: readonly Entry[],
): ReadonlyMap<string, { readonly end: number; readonly states: readonly DeliveryState[] }> {
  const first = new Map<string, { readonly end: number; readonly states: readonly DeliveryState[] }>();
  const note = (messageId: string, end: number, ...states: readonly DeliveryState[]): void => {
    if (end < (first.get(messageId)?.end ?? Number.POSITIVE_INFINITY)) first.set(messageId, { end, states });
  };
  for (const { act, messageId, outcome, end } of deliveryActs(entries)) {
    if (outcome !== "ok") continue;
    if (act === "ack") note(messageId, end, "acknowledged");
    if (act === "fail" || act === "force_error") note(messageId, end, "dead");
  }
  for (const { messageId, outcome, end } of entriesOf(entries, "finish")) {
    if (outcome === "ok") note(messageId, end, "acknowledged");
  }
  for (const { messageId, found, end } of entriesOf(entries, "fetch")) {
    if (found !== undefined && isSettled(found.state)) note(messageId, end, found.state);
  }
  return first;
}

/** When a client first tried to settle or take each message, whatever the outcome. */
function firstSettling(entries: readonly Entry[]): ReadonlyMap<string, number> {
  const first = new Map<string, number>();
  const note = (messageId: string, start: number): void => {
    if (start < (first.get(messageId) ?? Number.POSITIVE_INFINITY)) first.set(messageId, start);
  };
  for (const { messageId, start } of deliveryActs(entries)) note(messageId, start);
  for (const { grants, start } of entriesOf(entries, "lease")) {
    for (const { messageId } of grants) note(messageId, start);
  }
  return first;
}
