import {
  definedMembers,
  isJsonObject,
  type JsonObject,
  mapMembers,
  memberNames,
  renameMembers,
  withoutMembers,
} from "./json-members.ts";
import { asObject } from "./v1-form.ts";

/**
 * Push configurations: flat in 1.0; in older dialects a nested object beside the id of the task, which is `taskId`
 * (0.2, 0.3), `id` (0.1) or a path (0.3 over REST).
 */
const NAMES = memberNames({
  task_id: "taskId",
  push_notification_config: "pushNotificationConfig",
  config_id: "configId",
});
const RESOURCE = /^tasks\/([^/]+)(?:\/pushNotificationConfigs(?:\/([^/]*))?)?$/;

/** Any form to the flat one. */
export function readPushConfig(value: unknown): JsonObject {
  const outer = renameMembers(asObject(value, "push configuration"), NAMES);
  const inner = outer["config"] ?? outer["pushNotificationConfig"];
  if (!isJsonObject(inner)) return mapMembers(outer, { authentication: readAuthentication });
  const resource = readResourceName(outer["name"] ?? outer["parent"]);
  const flat = readPushConfig(inner);
  return definedMembers({
    ...withoutMembers(outer, "config", "pushNotificationConfig", "name", "parent", "configId", "id"),
    ...flat,
    taskId: outer["taskId"] ?? resource.taskId ?? flat["taskId"] ?? outer["id"],
    id: flat["id"] ?? outer["configId"] ?? resource.configId,
  });
}

/** The configuration without its task. */
export function writeInnerPushConfig(config: JsonObject): JsonObject {
  const flat = withoutMembers(readPushConfig(config), "taskId", "tenant");
  return mapMembers(flat, { authentication: writeAuthentication });
}

/** 0.2 and 0.3. */
export function writePushConfig(config: JsonObject): JsonObject {
  const { taskId, tenant } = readPushConfig(config);
  return definedMembers({ tenant, taskId, pushNotificationConfig: writeInnerPushConfig(config) });
}

/** 0.1. */
export function writeV01PushConfig(config: JsonObject): JsonObject {
  const { taskId, tenant } = readPushConfig(config);
  return definedMembers({ tenant, id: taskId, pushNotificationConfig: writeInnerPushConfig(config) });
}

/** 0.3 over REST. */
export function writeProtoPushConfig(config: JsonObject): JsonObject {
  const { taskId, id, tenant } = readPushConfig(config);
  const name = writeResourceName(taskId, id ?? "");
  return definedMembers({ tenant, name, pushNotificationConfig: writeInnerPushConfig(config) });
}

/** `tasks/{id}` and `tasks/{id}/pushNotificationConfigs/{cid}`. */
export function readResourceName(name: unknown): { readonly taskId?: string; readonly configId?: string } {
  const [, taskId, configId] = RESOURCE.exec(textOf(name)) ?? [];
  return {
    ...(taskId === undefined ? {} : { taskId }),
    ...(configId === undefined || configId === "" ? {} : { configId }),
  };
}

export function writeResourceName(taskId: unknown, configId?: unknown): string {
  const task = `tasks/${textOf(taskId)}`;
  return configId === undefined ? task : `${task}/pushNotificationConfigs/${textOf(configId)}`;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** 1.0 has one scheme. The list of several schemes stays beside the first. */
function readAuthentication(value: unknown): unknown {
  if (!isJsonObject(value) || !Array.isArray(value["schemes"]) || value["scheme"] != null) return value;
  const schemes = value["schemes"] as readonly unknown[];
  const rest = schemes.length > 1 ? value : withoutMembers(value, "schemes");
  return schemes.length === 0 ? rest : { scheme: schemes[0], ...rest };
}

function writeAuthentication(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const { scheme, schemes, ...rest } = value;
  if (Array.isArray(schemes)) return { schemes: schemes as readonly unknown[], ...rest };
  return { schemes: scheme == null || scheme === "" ? [] : [scheme], ...rest };
}
