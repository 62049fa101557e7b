import { RelayError } from "../base/relay-error.ts";
import type { A2aDialect, A2aEventPosition, A2aOperation } from "./a2a-dialect.ts";
import type { A2aStreamResponse } from "./a2a-json.ts";
import { asAnswer, readAnswer } from "./answer-reader.ts";
import { readCard, writeV03Card } from "./card-dialect.ts";
import { FormWriter, resultWriter } from "./form-writer.ts";
import {
  definedMembers,
  isJsonObject,
  type JsonObject,
  mapMembers,
  memberNames,
  renameMembers,
  withoutMembers,
} from "./json-members.ts";
import { toTypePart } from "./part-dialect.ts";
import { writeInnerPushConfig, writeV01PushConfig } from "./push-config-dialect.ts";
import { readTaskState, writePlainState } from "./state-names.ts";
import { readOlderParams } from "./v03-dialect.ts";
import { readV1Params } from "./v1-dialect.ts";
import { asObject, readArtifactUpdate, readStatusUpdate, readWrapped, writePlainRole } from "./v1-form.ts";

/**
 * 0.1: the caller names the task, a send is answered at once with the task, and contexts are called sessions. There are
 * no message ids, and artifacts are numbered. Members that 0.1 does not have are written anyway; its readers skip them.
 */
const SESSION = memberNames({ contextId: "sessionId" });
const PARAM_NAMES = memberNames({
  session_id: "sessionId",
  accepted_output_modes: "acceptedOutputModes",
  history_length: "historyLength",
  push_notification: "pushNotification",
});

const WRITER = new FormWriter({
  part: toTypePart,
  role: writePlainRole,
  state: writeV01State,
  message: (message) => message,
  artifact: (artifact, index) => ({ index, ...artifact }),
  task: (task) => renameMembers(task, SESSION),
});

const writeResult = resultWriter({
  outcome: (outcome) => withoutMembers(writeEvent(outcome, { isFinal: false }), "final"),
  task: (task) => WRITER.task(task),
  pushConfig: writeV01PushConfig,
  pushConfigs: (configs) => configs,
  nothing: null,
  card: writeV03Card,
});

export const V01_DIALECT: A2aDialect = {
  version: "0.1",
  methods: {
    send: "tasks/send",
    stream: "tasks/sendSubscribe",
    get: "tasks/get",
    cancel: "tasks/cancel",
    subscribe: "tasks/resubscribe",
    "push-create": "tasks/pushNotification/set",
    "push-get": "tasks/pushNotification/get",
  },
  pushes: "task",
  readParams,
  writeParams,
  readResult,
  writeResult,
  readEvent,
  writeEvent,
  readCard,
  writeCard: writeV03Card,
};

/** 0.1 has a closed list of states; two states are newer. */
function writeV01State(value: unknown): unknown {
  const state = readTaskState(value);
  if (state === "rejected") return "failed";
  return state === "auth-required" ? "input-required" : writePlainState(value);
}

function readParams(operation: A2aOperation, params: unknown): JsonObject {
  if (operation !== "send" && operation !== "stream") {
    return readOlderParams(operation, readV1Params(operation, params));
  }
  const named = renameMembers(asObject(params ?? {}, "params"), PARAM_NAMES);
  const { id, sessionId, message, acceptedOutputModes, historyLength, pushNotification, ...rest } = named;
  const configuration = definedMembers({
    ...(isJsonObject(rest["configuration"]) ? rest["configuration"] : {}),
    acceptedOutputModes: acceptedOutputModes ?? undefined,
    historyLength: historyLength ?? undefined,
    taskPushNotificationConfig: pushNotification ?? undefined,
    returnImmediately: operation === "send" ? true : undefined,
  });
  const inSession = sessionId == null ? message : { ...asObject(message, "message"), contextId: sessionId };
  const read = readV1Params(operation, { ...rest, message: inSession, configuration });
  return definedMembers({ ...read, clientTaskId: id ?? undefined });
}

function writeParams(operation: A2aOperation, params: JsonObject): JsonObject {
  const plain = readV1Params(operation, params);
  switch (operation) {
    case "send":
    case "stream":
      return writeSendParams(plain, params["clientTaskId"]);
    case "push-create":
      return writeV01PushConfig(plain);
    case "push-get":
    case "push-delete":
    case "push-list": {
      const { taskId, id, ...rest } = plain;
      return definedMembers({ id: taskId, pushNotificationConfigId: id, ...rest });
    }
    case "list":
      return mapMembers(renameMembers(plain, SESSION), { status: writeV01State });
    default:
      return plain;
  }
}

function writeSendParams(params: JsonObject, clientTaskId: unknown): JsonObject {
  const { message, configuration, ...rest } = params;
  const { taskId, contextId, ...bare } = asObject(message, "message");
  const id = taskId ?? clientTaskId ?? bare["messageId"];
  if (id == null) {
    throw new RelayError(
      "invalid_argument",
      "in A2A 0.1 the caller names the task: give message.taskId, clientTaskId or message.messageId",
    );
  }
  const { acceptedOutputModes, historyLength, taskPushNotificationConfig, ...other } = isJsonObject(
    configuration,
  )
    ? withoutMembers(configuration, "returnImmediately")
    : {};
  return definedMembers({
    id,
    sessionId: contextId,
    message: WRITER.message(bare),
    acceptedOutputModes,
    historyLength,
    pushNotification: isJsonObject(taskPushNotificationConfig)
      ? writeInnerPushConfig(taskPushNotificationConfig)
      : undefined,
    configuration: Object.keys(other).length === 0 ? undefined : other,
    ...rest,
  });
}

function readResult(operation: A2aOperation, result: unknown): JsonObject {
  const read = readAnswer(operation, result);
  const task = (value: unknown): JsonObject => readTask(value as JsonObject);
  switch (operation) {
    case "send":
    case "stream":
    case "subscribe":
      return mapMembers(read, { task });
    case "get":
    case "cancel":
      return task(read);
    case "list":
      return mapMembers(read, { tasks: (tasks) => (tasks as readonly unknown[]).map(task) });
    default:
      return read;
  }
}

function readTask(task: JsonObject): JsonObject {
  return mapMembers(task, {
    artifacts: (artifacts) =>
      (artifacts as readonly JsonObject[]).map((artifact, index) => readArtifact(artifact, index)),
  });
}

/** A numbered artifact gets its number as id, so that later chunks find it. */
function readArtifact(artifact: JsonObject, position: number): JsonObject {
  const { index, append: _append, lastChunk: _lastChunk, ...rest } = artifact;
  return { artifactId: String(typeof index === "number" ? index : position), ...rest };
}

function readEvent(event: unknown): A2aStreamResponse {
  return asAnswer(() => {
    const bare = asObject(event, "event");
    const isWhole = Array.isArray(bare["artifacts"]) || Array.isArray(bare["history"]);
    const isStatus = isJsonObject(bare["status"]) && !isWhole;
    return mapMembers(isStatus ? { statusUpdate: readStatusUpdate(bare) } : readWrapped(bare), {
      task: (task) => readTask(withoutMembers(task as JsonObject, "final")),
      statusUpdate: (update) => withoutMembers(update as JsonObject, "final"),
      artifactUpdate: (update) => readArtifactPiece(update as JsonObject),
    });
  });
}

function readArtifactPiece(update: JsonObject): JsonObject {
  const { append, lastChunk } = asObject(update["artifact"], "artifact");
  return definedMembers({
    append: append ?? undefined,
    lastChunk: lastChunk ?? undefined,
    ...update,
    artifact: readArtifact(update["artifact"] as JsonObject, 0),
  });
}

/** Streams of 0.1 have only updates: a task becomes a full update, and a message completes its task. */
function writeEvent(event: A2aStreamResponse, { isFinal, artifactIndex }: A2aEventPosition): JsonObject {
  const { task, message, statusUpdate, artifactUpdate } = readWrapped(event);
  if (task !== undefined) return { ...WRITER.task(task), final: isFinal };
  if (message !== undefined) return { ...taskOfMessage(message as JsonObject), final: isFinal };
  if (statusUpdate !== undefined) {
    const update = mapMembers(readStatusUpdate(statusUpdate), { status: (status) => WRITER.status(status) });
    return { ...idsOf(update), final: isFinal };
  }
  const { append, lastChunk, artifact, ...update } = readArtifactUpdate(artifactUpdate);
  const piece = definedMembers({ ...WRITER.artifact(artifact, artifactIndex ?? 0), append, lastChunk });
  return { ...idsOf(update), artifact: piece };
}

function idsOf(update: JsonObject): JsonObject {
  return renameMembers(update, memberNames({ taskId: "id", contextId: "sessionId" }));
}

function taskOfMessage(message: JsonObject): JsonObject {
  return definedMembers({
    id: message["taskId"] ?? message["messageId"],
    sessionId: message["contextId"],
    status: { state: "completed", message: WRITER.message(message) },
  });
}
