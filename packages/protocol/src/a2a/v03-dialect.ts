import type { A2aDialect, A2aOperation, A2aVersion } from "./a2a-dialect.ts";
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
import { toKindPart } from "./part-dialect.ts";
import { writeInnerPushConfig, writePushConfig } from "./push-config-dialect.ts";
import { writePlainState } from "./state-names.ts";
import { readV1Params } from "./v1-dialect.ts";
import { readArtifactUpdate, readStatusUpdate, readWrapped, writePlainRole } from "./v1-form.ts";

/** JSON-RPC of 0.3 and 0.2, which have the same bodies. Objects have a `kind`. */
const WRITER = new FormWriter({
  part: toKindPart,
  role: writePlainRole,
  state: writePlainState,
  message: (message) => ({ kind: "message", ...message }),
  artifact: (artifact) => artifact,
  task: (task) => ({ kind: "task", ...task }),
});

const writeResult = resultWriter({
  outcome: (outcome) => writeEvent(outcome, { isFinal: false }),
  task: (task) => WRITER.task(task),
  pushConfig: writePushConfig,
  pushConfigs: (configs) => configs,
  nothing: null,
  card: writeV03Card,
});

const V02_METHODS = {
  send: "message/send",
  stream: "message/stream",
  get: "tasks/get",
  cancel: "tasks/cancel",
  subscribe: "tasks/resubscribe",
  "push-create": "tasks/pushNotificationConfig/set",
  "push-get": "tasks/pushNotificationConfig/get",
  "push-list": "tasks/pushNotificationConfig/list",
  "push-delete": "tasks/pushNotificationConfig/delete",
} as const;

const V03_METHODS = { ...V02_METHODS, "extended-card": "agent/getAuthenticatedExtendedCard" } as const;

export const V03_DIALECT: A2aDialect = dialectOf("0.3", V03_METHODS);
export const V02_DIALECT: A2aDialect = dialectOf("0.2", V02_METHODS);

function dialectOf(version: A2aVersion, methods: A2aDialect["methods"]): A2aDialect {
  return {
    version,
    methods,
    pushes: "task",
    readParams: (operation, params) => readOlderParams(operation, readV1Params(operation, params)),
    writeParams: (operation, params) => writeParams(operation, params, version),
    readResult: readAnswer,
    writeResult,
    readEvent: readOlderEvent,
    writeEvent,
    readCard,
    writeCard: writeV03Card,
  };
}

/** Converts params of 0.2 and 0.3 whose members have the names of 1.0 already. */
export function readOlderParams(operation: A2aOperation, params: JsonObject): JsonObject {
  switch (operation) {
    case "send":
    case "stream":
      return mapMembers(params, { configuration: readOlderConfiguration });
    case "push-get":
    case "push-delete":
    case "push-list": {
      if (params["taskId"] != null) return params;
      const { id: taskId, pushNotificationConfigId: id, ...rest } = params;
      return definedMembers({ taskId, id, ...rest });
    }
    default:
      return params;
  }
}

/** A configuration without `blocking` asks for an immediate answer. */
function readOlderConfiguration(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const { blocking, ...rest } = value;
  return { returnImmediately: blocking !== true && blocking !== "true", ...rest };
}

/** 1.0 has no `final`: the stream just ends. */
export function readOlderEvent(event: unknown): A2aStreamResponse {
  return asAnswer(() => {
    const read = readWrapped(event);
    return mapMembers(read, { statusUpdate: (update) => withoutMembers(update as JsonObject, "final") });
  });
}

function writeParams(operation: A2aOperation, params: JsonObject, version: A2aVersion): JsonObject {
  const plain = readV1Params(operation, params);
  switch (operation) {
    case "send":
    case "stream":
      return mapMembers(plain, {
        message: (message) => WRITER.message(message),
        configuration: (configuration) => writeConfiguration(configuration as JsonObject, version),
      });
    case "push-create":
      return writePushConfig(plain);
    case "push-get":
    case "push-delete":
    case "push-list": {
      const { taskId, id, ...rest } = plain;
      return definedMembers({ id: taskId, pushNotificationConfigId: id, ...rest });
    }
    case "list":
      return mapMembers(plain, { status: writePlainState });
    default:
      return plain;
  }
}

/** Always writes `blocking`, because servers have different defaults. */
function writeConfiguration(configuration: JsonObject, version: A2aVersion): JsonObject {
  const { returnImmediately, ...rest } = configuration;
  const named = renameMembers(rest, memberNames({ taskPushNotificationConfig: "pushNotificationConfig" }));
  return {
    // 0.2 requires the list even when it is empty.
    ...(version === "0.2" ? { acceptedOutputModes: [] } : {}),
    ...mapMembers(named, {
      pushNotificationConfig: (config) => writeInnerPushConfig(config as JsonObject),
    }),
    blocking: returnImmediately !== true,
  };
}

function writeEvent(event: A2aStreamResponse, { isFinal }: { readonly isFinal: boolean }): JsonObject {
  const { task, message, statusUpdate, artifactUpdate } = readWrapped(event);
  if (task !== undefined) return WRITER.task(task);
  if (message !== undefined) return WRITER.message(message);
  if (statusUpdate !== undefined) {
    const update = mapMembers(readStatusUpdate(statusUpdate), { status: (status) => WRITER.status(status) });
    return { kind: "status-update", ...update, final: isFinal };
  }
  const update = readArtifactUpdate(artifactUpdate);
  return {
    kind: "artifact-update",
    ...mapMembers(update, { artifact: (artifact) => WRITER.artifact(artifact, 0) }),
  };
}
