import type { Part } from "../model/part.ts";
import type { A2aDialect, A2aOperation } from "./a2a-dialect.ts";
import type { A2aStreamResponse } from "./a2a-json.ts";
import { asAnswer, readAnswer } from "./answer-reader.ts";
import { readCard, writeV03Card, writeV03ProtoCard } from "./card-dialect.ts";
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
import { fromProtoPart, toProtoPart } from "./part-dialect.ts";
import {
  readResourceName,
  writeInnerPushConfig,
  writeProtoPushConfig,
  writeResourceName,
} from "./push-config-dialect.ts";
import { readA2aState } from "./state-names.ts";
import { readOlderParams, V03_DIALECT } from "./v03-dialect.ts";
import { readV1Params } from "./v1-dialect.ts";
import { readArtifactUpdate, readRole, readStatusUpdate, readWrapped } from "./v1-form.ts";

/**
 * REST of 0.3: the JSON of the protocol buffers `a2a.v1`, which share half of their names with the JSON-RPC of the same
 * version. Also reads bodies of that JSON-RPC, because many clients send them.
 */
const WRITER = new FormWriter({
  part: toProtoPart,
  role: readRole,
  state: writeProtoState,
  message: (message) => renameMembers(message, memberNames({ parts: "content" })),
  artifact: (artifact) => artifact,
  task: (task) => task,
});

const writeResult = resultWriter({
  outcome: (outcome) => writeEvent(outcome, { isFinal: false }),
  task: (task) => WRITER.task(task),
  pushConfig: writeProtoPushConfig,
  pushConfigs: (configs, list) => ({ ...list, configs }),
  nothing: {},
  card: writeV03ProtoCard,
});

export const V03_REST_DIALECT: A2aDialect = {
  version: "0.3",
  methods: V03_DIALECT.methods,
  pushes: "task",
  readParams,
  writeParams,
  readResult: (operation, result) => readAnswer(operation, result, readPart),
  writeResult,
  readEvent: (event) =>
    asAnswer(() =>
      mapMembers(readWrapped(event, readPart), {
        statusUpdate: (update) => withoutMembers(update as JsonObject, "final"),
      }),
    ),
  writeEvent,
  readCard,
  writeCard: writeV03Card,
};

function readPart(part: Part): Part {
  return fromProtoPart(part);
}

/** The protocol buffers of 0.3 spell it with two L. */
function writeProtoState(state: unknown): unknown {
  const name = readA2aState(state);
  return name === "TASK_STATE_CANCELED" ? "TASK_STATE_CANCELLED" : name;
}

function readParams(operation: A2aOperation, params: unknown): JsonObject {
  return readOlderParams(operation, readNamed(operation, readV1Params(operation, params, readPart)));
}

/** Paths name tasks and configurations; plain ids are accepted too. */
function readNamed(operation: A2aOperation, params: JsonObject): JsonObject {
  if (operation === "send" || operation === "stream" || operation === "push-create") return params;
  const { taskId, configId } = readResourceName(params["name"] ?? params["parent"]);
  if (taskId === undefined) return params;
  const rest = withoutMembers(params, "name", "parent");
  return operation.startsWith("push-")
    ? definedMembers({ taskId, id: configId, ...rest })
    : { id: taskId, ...rest };
}

function writeParams(operation: A2aOperation, params: JsonObject): JsonObject {
  const plain = readV1Params(operation, params);
  switch (operation) {
    case "send":
    case "stream":
      return writeSendParams(plain);
    case "get":
    case "cancel":
    case "subscribe": {
      const { id, ...rest } = plain;
      return { name: writeResourceName(id), ...rest };
    }
    case "push-create":
      return writeProtoPushConfig(plain);
    case "push-get":
    case "push-delete": {
      const { taskId, id, ...rest } = plain;
      return { name: writeResourceName(taskId, id ?? ""), ...rest };
    }
    case "push-list": {
      const { taskId, ...rest } = plain;
      return { parent: writeResourceName(taskId), ...rest };
    }
    case "list":
      return mapMembers(plain, { status: writeProtoState });
    default:
      return plain;
  }
}

function writeSendParams(params: JsonObject): JsonObject {
  const named = renameMembers(params, memberNames({ message: "request" }));
  return mapMembers(named, {
    request: (message) => WRITER.message(message),
    configuration: writeConfiguration,
  });
}

function writeConfiguration(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const { returnImmediately, ...rest } = value;
  const named = renameMembers(rest, memberNames({ taskPushNotificationConfig: "pushNotification" }));
  return {
    ...mapMembers(named, { pushNotification: (config) => writeInnerPushConfig(config as JsonObject) }),
    blocking: returnImmediately !== true,
  };
}

function writeEvent(event: A2aStreamResponse, { isFinal }: { readonly isFinal: boolean }): JsonObject {
  const { message, ...wrapped } = readWrapped(event);
  if (message !== undefined) return { msg: WRITER.message(message), ...wrapped };
  return mapMembers(wrapped, {
    task: (task) => WRITER.task(task),
    statusUpdate: (update) => ({
      ...mapMembers(readStatusUpdate(update), { status: (status) => WRITER.status(status) }),
      final: isFinal,
    }),
    artifactUpdate: (update) =>
      mapMembers(readArtifactUpdate(update), { artifact: (artifact) => WRITER.artifact(artifact, 0) }),
  });
}
