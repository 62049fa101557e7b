import { RelayError } from "../base/relay-error.ts";
import { A2aError } from "./a2a-error.ts";
import type { A2aOperation } from "./a2a-dialect.ts";
import { readCard } from "./card-dialect.ts";
import { isJsonObject, type JsonObject, mapMembers, memberNames, renameMembers } from "./json-members.ts";
import { toV1Part } from "./part-dialect.ts";
import { readPushConfig } from "./push-config-dialect.ts";
import { asList, asObject, type PartReader, readTask, readWrapped } from "./v1-form.ts";

/**
 * Reads answers of any dialect into 1.0. Agents mix the dialects, so the shape of an answer decides, not the dialect it
 * should have. An unreadable answer is the agent's fault.
 */
const LIST_NAMES = memberNames({
  next_page_token: "nextPageToken",
  page_size: "pageSize",
  total_size: "totalSize",
});

export function readAnswer(
  operation: A2aOperation,
  result: unknown,
  readPart: PartReader = toV1Part,
): JsonObject {
  return asAnswer(() => {
    switch (operation) {
      case "send":
      case "stream":
      case "subscribe":
        return readWrapped(result, readPart);
      case "get":
      case "cancel":
        return readTask(unwrapped(result), readPart);
      case "list":
        return readTaskList(result, readPart);
      case "push-create":
      case "push-get":
        return readPushConfig(result);
      case "push-list":
        return readPushConfigs(result);
      case "push-delete":
        return {};
      default:
        return readCard(asObject(result, "card"));
    }
  });
}

/** An unreadable answer is not the caller's mistake. */
export function asAnswer<Answer>(read: () => Answer): Answer {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RelayError) || error.code !== "invalid_argument") throw error;
    throw new A2aError("InvalidAgentResponse", `the agent's answer cannot be read: ${error.message}`, {
      cause: error,
    });
  }
}

function unwrapped(result: unknown): unknown {
  return isJsonObject(result) && isJsonObject(result["task"]) && result["status"] == null
    ? result["task"]
    : result;
}

function readTaskList(result: unknown, readPart: PartReader): JsonObject {
  const list = Array.isArray(result)
    ? { tasks: result as readonly unknown[] }
    : asObject(result, "list of tasks");
  const named = { tasks: [], nextPageToken: "", ...renameMembers(list, LIST_NAMES) };
  return mapMembers(named, {
    tasks: (tasks) => asList(tasks, "tasks").map((task) => readTask(task, readPart)),
  });
}

function readPushConfigs(result: unknown): JsonObject {
  const list = Array.isArray(result)
    ? { configs: result as readonly unknown[] }
    : asObject(result, "list of push configurations");
  const named = { configs: [], nextPageToken: "", ...renameMembers(list, LIST_NAMES) };
  return mapMembers(named, { configs: (configs) => asList(configs, "configs").map(readPushConfig) });
}
