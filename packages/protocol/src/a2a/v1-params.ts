import type { A2aOperation } from "./a2a-dialect.ts";
import {
  isJsonObject,
  type JsonObject,
  mapMembers,
  memberNames,
  renameMembers,
  withoutMembers,
  withoutNulls,
} from "./json-members.ts";
import { toV1Part } from "./part-dialect.ts";
import { readPushConfig } from "./push-config-dialect.ts";
import { readA2aState } from "./state-names.ts";
import { asParts, asObject, type PartReader, readMessage } from "./v1-form.ts";

/** What is asked in any dialect, under the names of 1.0. What older dialects say otherwise is theirs to turn. */
const NAMES = memberNames({
  context_id: "contextId",
  history_length: "historyLength",
  include_artifacts: "includeArtifacts",
  page_size: "pageSize",
  page_token: "pageToken",
  push_notification_config_id: "pushNotificationConfigId",
  status_timestamp_after: "statusTimestampAfter",
  task_id: "taskId",
});
const SEND_NAMES = memberNames({ request: "message" });
const CONFIGURATION_NAMES = memberNames({
  accepted_output_modes: "acceptedOutputModes",
  history_length: "historyLength",
  return_immediately: "returnImmediately",
  task_push_notification_config: "taskPushNotificationConfig",
  push_notification_config: "taskPushNotificationConfig",
  pushNotificationConfig: "taskPushNotificationConfig",
  push_notification: "taskPushNotificationConfig",
  pushNotification: "taskPushNotificationConfig",
});

/** The members of 1.0 around what is said; never those inside of parts and metadata. */
const PARAMS_MEMBERS = new Set([
  "configuration",
  "contextId",
  "historyLength",
  "id",
  "includeArtifacts",
  "metadata",
  "pageSize",
  "pageToken",
  "pushNotificationConfigId",
  "status",
  "statusTimestampAfter",
  "taskId",
  "tenant",
]);
const MESSAGE_MEMBERS = new Set([
  "contextId",
  "extensions",
  "messageId",
  "metadata",
  "referenceTaskIds",
  "role",
  "taskId",
]);
const CONFIGURATION_MEMBERS = new Set([
  "acceptedOutputModes",
  "blocking",
  "historyLength",
  "returnImmediately",
  "taskPushNotificationConfig",
]);
const PUSH_CONFIG_MEMBERS = new Set(["authentication", "id", "metadata", "taskId", "tenant", "token"]);
const AUTHENTICATION_MEMBERS = new Set(["credentials", "scheme"]);

/** Only 0.1 lets callers name their tasks; from elsewhere the member would be read as if it had. */
const CLIENT_TASK_ID = "clientTaskId";

export function readV1Params(
  operation: A2aOperation,
  params: unknown,
  readPart: PartReader = toV1Part,
): JsonObject {
  const object = withoutMembers(asObject(params ?? {}, "params"), CLIENT_TASK_ID);
  if (operation === "send" || operation === "stream") return readSendParams(object, readPart);
  if (operation === "push-create") return readConfig(object);
  return mapMembers(withoutNulls(renameMembers(object, NAMES), PARAMS_MEMBERS), {
    historyLength: readInteger,
    pageSize: readInteger,
    includeArtifacts: readBoolean,
    ...(operation === "list" ? { status: readA2aState } : {}),
  });
}

function readSendParams(params: JsonObject, readPart: PartReader): JsonObject {
  const named = withoutNulls(renameMembers(params, SEND_NAMES), PARAMS_MEMBERS);
  const message = withoutNulls(readMessage(named["message"], readPart), MESSAGE_MEMBERS);
  asParts(message["parts"], "message.parts");
  return mapMembers({ ...named, message }, { configuration: readConfiguration });
}

function readConfiguration(value: unknown): JsonObject {
  const configuration = renameMembers(asObject(value, "configuration"), CONFIGURATION_NAMES);
  return mapMembers(withoutNulls(configuration, CONFIGURATION_MEMBERS), {
    historyLength: readInteger,
    returnImmediately: readBoolean,
    taskPushNotificationConfig: readConfig,
  });
}

function readConfig(value: unknown): JsonObject {
  return mapMembers(withoutNulls(readPushConfig(value), PUSH_CONFIG_MEMBERS), {
    authentication: (said) => (isJsonObject(said) ? withoutNulls(said, AUTHENTICATION_MEMBERS) : said),
  });
}

/** Queries have only texts, and ProtoJSON allows numbers as texts too. What is none stays for the one who checks. */
function readInteger(value: unknown): unknown {
  return typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

function readBoolean(value: unknown): unknown {
  if (value === "true") return true;
  return value === "false" ? false : value;
}
