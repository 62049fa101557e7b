import type { A2aDialect, A2aOperation } from "./a2a-dialect.ts";
import type { A2aStreamResponse } from "./a2a-json.ts";
import { asAnswer, readAnswer } from "./answer-reader.ts";
import { readCard } from "./card-dialect.ts";
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
import { asObject, asParts, type PartReader, readMessage, readWrapped } from "./v1-form.ts";

/** 1.0. Writing is reading, because stored values may have an older form. */
export const V1_DIALECT: A2aDialect = {
  version: "1.0",
  methods: {
    send: "SendMessage",
    stream: "SendStreamingMessage",
    get: "GetTask",
    list: "ListTasks",
    cancel: "CancelTask",
    subscribe: "SubscribeToTask",
    "push-create": "CreateTaskPushNotificationConfig",
    "push-get": "GetTaskPushNotificationConfig",
    "push-list": "ListTaskPushNotificationConfigs",
    "push-delete": "DeleteTaskPushNotificationConfig",
    "extended-card": "GetExtendedAgentCard",
  },
  pushes: "event",
  readParams: readV1Params,
  writeParams: readV1Params,
  readResult: readAnswer,
  writeResult: readAnswer,
  readEvent: (event) => asAnswer(() => readWrapped(event) as A2aStreamResponse),
  writeEvent: (event) => readWrapped(event),
  readCard,
  writeCard: readCard,
};

/** Params of any dialect under the names of 1.0; older dialects convert the rest. */
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

/** Members of 1.0 in which null means absent; never those inside parts and metadata. */
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

/** Only 0.1 lets callers name their tasks; other dialects must not smuggle the member in. */
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

/** Queries are strings, and ProtoJSON allows numbers as strings. Other values stay for the validator. */
function readInteger(value: unknown): unknown {
  return typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
}

function readBoolean(value: unknown): unknown {
  if (value === "true") return true;
  return value === "false" ? false : value;
}
