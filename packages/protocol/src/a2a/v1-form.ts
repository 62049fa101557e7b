import type { Part } from "../model/part.ts";
import { RelayError } from "../base/relay-error.ts";
import {
  isJsonObject,
  type JsonObject,
  mapMembers,
  memberNames,
  nameOfJson,
  renameMembers,
  withoutMembers,
} from "./json-members.ts";
import { toV1Part } from "./part-dialect.ts";
import { readA2aState } from "./state-names.ts";

/**
 * Reads messages, tasks and events of any dialect into 1.0. It is liberal on purpose: names in camelCase or snake_case,
 * roles and states in any spelling, parts with or without a tag. So one reader serves every dialect, and every writer
 * can start with it, whatever form a value was stored in.
 */

/** Reads a part of a dialect whose parts are ambiguous. */
export type PartReader = (part: Part) => Part;

const MESSAGE_NAMES = memberNames({
  message_id: "messageId",
  context_id: "contextId",
  task_id: "taskId",
  reference_task_ids: "referenceTaskIds",
  content: "parts",
});
const TASK_NAMES = memberNames({
  context_id: "contextId",
  sessionId: "contextId",
  session_id: "contextId",
});
const UPDATE_NAMES = memberNames({
  ...Object.fromEntries(TASK_NAMES),
  task_id: "taskId",
  id: "taskId",
  last_chunk: "lastChunk",
});
const ARTIFACT_NAMES = memberNames({ artifact_id: "artifactId" });
const STATUS_NAMES = memberNames({ update: "message" });
const WRAPPER_NAMES = memberNames({
  msg: "message",
  status_update: "statusUpdate",
  artifact_update: "artifactUpdate",
});

const ROLES: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  ["user", "ROLE_USER"],
  ["agent", "ROLE_AGENT"],
  [1, "ROLE_USER"],
  [2, "ROLE_AGENT"],
]);

export function readMessage(value: unknown, readPart: PartReader = toV1Part): JsonObject {
  const message = untagged(asObject(value, "message"), "message");
  return mapMembers(renameMembers(message, MESSAGE_NAMES), {
    role: readRole,
    parts: (parts) => readParts(parts, "message.parts", readPart),
  });
}

export function readStatus(value: unknown, readPart: PartReader = toV1Part): JsonObject {
  return mapMembers(renameMembers(asObject(value, "status"), STATUS_NAMES), {
    state: readA2aState,
    message: (message) => readMessage(message, readPart),
  });
}

export function readArtifact(value: unknown, readPart: PartReader = toV1Part): JsonObject {
  return mapMembers(renameMembers(asObject(value, "artifact"), ARTIFACT_NAMES), {
    parts: (parts) => readParts(parts, "artifact.parts", readPart),
  });
}

export function readTask(value: unknown, readPart: PartReader = toV1Part): JsonObject {
  const task = untagged(asObject(value, "task"), "task");
  return mapMembers(renameMembers(task, TASK_NAMES), {
    status: (status) => readStatus(status, readPart),
    artifacts: (artifacts) => asList(artifacts, "task.artifacts").map((one) => readArtifact(one, readPart)),
    history: (history) => asList(history, "task.history").map((one) => readMessage(one, readPart)),
  });
}

export function readStatusUpdate(value: unknown, readPart: PartReader = toV1Part): JsonObject {
  const update = untagged(asObject(value, "status update"), "status-update");
  return mapMembers(renameMembers(update, UPDATE_NAMES), {
    status: (status) => readStatus(status, readPart),
  });
}

export function readArtifactUpdate(value: unknown, readPart: PartReader = toV1Part): JsonObject {
  const update = untagged(asObject(value, "artifact update"), "artifact-update");
  return mapMembers(renameMembers(update, UPDATE_NAMES), {
    artifact: (artifact) => readArtifact(artifact, readPart),
  });
}

/** One of task, message, statusUpdate and artifactUpdate, each in its wrapper or bare. */
export function readWrapped(value: unknown, readPart: PartReader = toV1Part): JsonObject {
  const object = renameMembers(asObject(value, "answer"), WRAPPER_NAMES);
  const bare = bareKindOf(object);
  const wrapped = bare === undefined ? object : { [bare]: value };
  const changes = {
    task: (task: unknown) => readTask(task, readPart),
    message: (message: unknown) => readMessage(message, readPart),
    statusUpdate: (update: unknown) => readStatusUpdate(update, readPart),
    artifactUpdate: (update: unknown) => readArtifactUpdate(update, readPart),
  };
  if (Object.keys(changes).every((name) => wrapped[name] == null)) {
    throw new RelayError(
      "invalid_argument",
      `expected a task, a message or an update of a task, got ${describe(object)}`,
    );
  }
  return mapMembers(wrapped, changes);
}

export function readRole(value: unknown): unknown {
  if (value === "ROLE_USER" || value === "ROLE_AGENT") return value;
  const plain = typeof value === "string" ? value.toLowerCase().replace(/^role_/, "") : value;
  return ROLES.get(plain) ?? value;
}

export function writePlainRole(value: unknown): unknown {
  const role = readRole(value);
  if (role === "ROLE_USER") return "user";
  return role === "ROLE_AGENT" ? "agent" : value;
}

export function readParts(value: unknown, where: string, readPart: PartReader): readonly JsonObject[] {
  const parts = asParts(value, where);
  for (const [index, part] of parts.entries()) asObject(part, `${where}[${index}]`, A_PART);
  return (parts as readonly JsonObject[]).map((part) => readPart(part));
}

const A_PART = '; a part is an object such as {"text": "hello"}';

export function asParts(value: unknown, where: string): readonly unknown[] {
  return asList(value, where, A_PART);
}

/** `advice` is appended to the error text. */
export function asObject(value: unknown, where: string, advice = ""): JsonObject {
  if (isJsonObject(value)) return value;
  throw new RelayError("invalid_argument", `${where}: expected an object, got ${nameOfJson(value)}${advice}`);
}

export function asList(value: unknown, where: string, advice = ""): readonly unknown[] {
  if (Array.isArray(value)) return value as readonly unknown[];
  throw new RelayError("invalid_argument", `${where}: expected a list, got ${nameOfJson(value)}${advice}`);
}

/** Removes the `kind` of the dialect. Any other value of `kind` stays. */
function untagged(object: JsonObject, kind: string): JsonObject {
  return object["kind"] === kind ? withoutMembers(object, "kind") : object;
}

const BARE_KINDS: ReadonlyMap<unknown, string> = new Map([
  ["task", "task"],
  ["message", "message"],
  ["status-update", "statusUpdate"],
  ["artifact-update", "artifactUpdate"],
]);

/** The kind of an object without a wrapper: by its tag, or else by members that only that kind has. */
function bareKindOf(object: JsonObject): string | undefined {
  const tagged = BARE_KINDS.get(object["kind"]);
  if (tagged !== undefined) return tagged;
  if (isJsonObject(object["artifact"])) return "artifactUpdate";
  if (isJsonObject(object["status"])) {
    const isWhole = Array.isArray(object["artifacts"]) || Array.isArray(object["history"]);
    const isUpdate = ["taskId", "task_id", "final"].some((name) => Object.hasOwn(object, name));
    return isUpdate && !isWhole ? "statusUpdate" : "task";
  }
  return Array.isArray(object["parts"]) || Array.isArray(object["content"]) ? "message" : undefined;
}

function describe(object: JsonObject): string {
  const names = Object.keys(object).slice(0, 5);
  return names.length === 0 ? "an empty object" : `an object with ${names.join(", ")}`;
}
