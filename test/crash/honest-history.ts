import { POSTMASTER } from "@a2a-relay/protocol";
import {
  type Entry,
  History,
  type JournalEvent,
  type NewMessage,
  type FetchEntry,
  type SendEntry,
} from "./history.ts";

const ADA = "ada@test";
export const BOB = "bob@test";

export const KEYED = message("with a key", { key: "k1" });
export const OTHER = message("something else under the same key", { key: "k1" });
const PLAIN = message("without a key", {});
const REQUEST = message("please", { kind: "request" });
export const FIRST_OF_BATCH = message("first of a batch", {});
const SECOND_OF_BATCH = message("second of a batch", {});
const RETRIED = message("retried after the crash", { key: "k2" });
const HOPELESS = message("this cannot be done", {});

/** A small run in which everything happened as it should. */
export function honest(): readonly Entry[] {
  const history = new History();
  const add = (entry: Parameters<History["record"]>[1]): void => void history.record(history.begin(), entry);
  const send = (...args: Parameters<typeof sent>): void => add(sent(...args));
  send(KEYED, "ok", { status: 201, messageId: "m1" });
  send(PLAIN, "ok", { status: 201, messageId: "m2" });
  send(message("another", {}), "ok", { status: 201, messageId: "m2b" });
  send(OTHER, "refused", { code: "conflict" });
  const another = message("another", {});
  const deliveries = [seen("m1", KEYED), seen("m2", PLAIN), seen("m2b", another)];
  add({ act: "read", outcome: "ok", mailbox: BOB, limit: 50, deliveries });
  add({ act: "ack", outcome: "ok", messageId: "m1" });
  add({ act: "read", outcome: "ok", mailbox: BOB, limit: 50, deliveries: deliveries.slice(1) });
  send(REQUEST, "ok", { status: 201, messageId: "m3", taskId: "t1" });
  add({ act: "lease", outcome: "ok", mailbox: BOB, grants: [grant("m3", REQUEST, "L1", 1)] });
  add({ act: "requeue", outcome: "ok", messageId: "m3", leaseId: "L1" });
  add({ act: "lease", outcome: "ok", mailbox: BOB, grants: [grant("m3", REQUEST, "L2", 2)] });
  const finish = { act: "finish", by: "complete", taskId: "t1", messageId: "m3" } as const;
  add({ ...finish, leaseId: "L1", attempt: 1, text: "done late", outcome: "refused", code: "lease_lost" });
  add({ ...finish, leaseId: "L2", attempt: 2, text: "done", outcome: "ok" });
  send(RETRIED, "unknown");
  const batch = { name: "b", atomic: true };
  send(FIRST_OF_BATCH, "unknown", { batch });
  send(SECOND_OF_BATCH, "unknown", { batch });
  add({ act: "webhook", messageId: "m2" });
  add({ act: "kill", how: "at a random moment" });
  add({ act: "start", tookMs: 500 });
  add({ act: "webhook", messageId: "m2" });
  send(RETRIED, "ok", { status: 201, messageId: "m5" });
  send(KEYED, "ok", { status: 200, messageId: "m1" });
  send(HOPELESS, "ok", { status: 201, messageId: "m7" });
  add({ act: "lease", outcome: "ok", mailbox: BOB, grants: [grant("m7", HOPELESS, "L3", 1)] });
  add({ act: "fail", outcome: "ok", messageId: "m7", leaseId: "L3", attempt: 1, text: "no" });
  add({ act: "verify", ok: true, lastSeq: 17 });
  add({ act: "journal", events: numbered(EVENTS) });
  for (const [messageId, found] of FOUND) add({ act: "fetch", messageId, found });
  add({
    act: "fetch_task",
    taskId: "t1",
    found: { state: "completed", text: "done", resultMessageId: "m4" },
  });
  return history.entries;
}

const EVENTS: readonly JournalEvent[] = [
  event("message.accepted", "m1"),
  event("message.accepted", "m2"),
  event("message.accepted", "m2b"),
  event("message.acknowledged", "m1"),
  event("message.accepted", "m3"),
  event("message.leased", "m3"),
  event("message.requeued", "m3"),
  event("message.leased", "m3"),
  event("message.acknowledged", "m3"),
  event("task.completed", "m3", "t1"),
  event("message.accepted", "m4"),
  event("message.accepted", "m5"),
  event("message.accepted", "m7"),
  event("message.leased", "m7"),
  event("message.dead", "m7"),
  event("message.accepted", "m6"),
];

const FOUND: readonly (readonly [string, NonNullable<FetchEntry["found"]>])[] = [
  ["m1", { ...stored(KEYED), state: "acknowledged" }],
  ["m2", { ...stored(PLAIN), push: "delivered" }],
  ["m2b", stored(message("another", {}))],
  ["m3", { ...stored(REQUEST), state: "acknowledged", attempt: 2 }],
  ["m4", { ...stored(message("done", {})), sender: BOB, recipient: ADA, replyTo: "m3" }],
  ["m5", stored(RETRIED)],
  ["m7", { ...stored(HOPELESS), state: "dead", attempt: 1 }],
  ["m6", { ...stored(message("it is dead", {})), sender: POSTMASTER, recipient: ADA, replyTo: "m7" }],
];

export function message(body: string, more: Partial<NewMessage>): NewMessage {
  return { sender: ADA, recipient: BOB, kind: "note", body, idempotent: false, ...more };
}

function stored({ sender, recipient, body }: NewMessage): NonNullable<FetchEntry["found"]> {
  return { sender, recipient, body, state: "available", attempt: 0 };
}

export function seen(messageId: string, { sender, body }: NewMessage) {
  return { messageId, sender, body };
}

export function grant(messageId: string, about: NewMessage, leaseId: string, attempt: number) {
  return { ...seen(messageId, about), leaseId, attempt };
}

export function event(type: string, messageId: string, taskId?: string): JournalEvent {
  return { seq: 0, type, messageId, taskId };
}

/** Far behind everything else. */
export function late(entry: Parameters<History["record"]>[1]): Entry {
  return { ...entry, start: 1_000_000, end: 1_000_001 };
}

export function sent(
  about: NewMessage,
  outcome: SendEntry["outcome"],
  more: Partial<SendEntry> = {},
): SendEntry {
  return { act: "send", message: about, outcome, start: 1_000_000, end: 1_000_001, ...more };
}

function numbered(events: readonly JournalEvent[]): readonly JournalEvent[] {
  return events.map((each, index) => ({ ...each, seq: index + 1 }));
}

export function change<Act extends Entry["act"]>(
  entries: readonly Entry[],
  act: Act,
  how: (entry: Extract<Entry, { readonly act: Act }>) => Entry,
): readonly Entry[] {
  return entries.map((entry) =>
    entry.act === act ? how(entry as Extract<Entry, { readonly act: Act }>) : entry,
  );
}

export function changeFetch(
  entries: readonly Entry[],
  messageId: string,
  found: Partial<NonNullable<FetchEntry["found"]>> | undefined,
): readonly Entry[] {
  return change(entries, "fetch", (fetch) => {
    if (fetch.messageId !== messageId || fetch.found === undefined) return fetch;
    return { ...fetch, found: found === undefined ? undefined : { ...fetch.found, ...found } };
  });
}

export function changeJournal(
  entries: readonly Entry[],
  how: (events: readonly JournalEvent[]) => readonly JournalEvent[],
): readonly Entry[] {
  return change(entries, "journal", (journal) => ({ ...journal, events: numbered(how(journal.events)) }));
}

/** The message is in the journal and in a mailbox, whatever its sender was told. */
export function accepted(entries: readonly Entry[], messageId: string, about: NewMessage): readonly Entry[] {
  const grown = changeJournal(entries, (events) => [...events, event("message.accepted", messageId)]);
  return [...grown, late({ act: "fetch", messageId, found: stored(about) })];
}
