import type { Message } from "@a2a-relay/protocol";
import type { EventData, EventRecord } from "../ports/journal.ts";
import type { MessageRecord } from "../ports/messages.ts";
import type { StoredJson } from "../ports/stored-json.ts";

export function toStoredJson(value: object): StoredJson {
  return JSON.stringify(value) as StoredJson;
}

export function messageOf({ json }: Pick<MessageRecord, "json">): Message {
  return JSON.parse(json) as Message;
}

export function eventDataOf({ dataJson }: Pick<EventRecord, "dataJson">): EventData {
  return JSON.parse(dataJson) as EventData;
}

/** The size of a value in UTF-8, as wires and stores count it. */
export function bytesAsJson(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Members in another order make a difference. */
export function isSameJson(one: object, other: object): boolean {
  return toStoredJson(one) === toStoredJson(other);
}
