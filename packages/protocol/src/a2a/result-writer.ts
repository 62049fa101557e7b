import type { A2aOperation } from "./a2a-dialect.ts";
import { readAnswer } from "./answer-reader.ts";
import { type JsonObject, mapMembers } from "./json-members.ts";
import { asList } from "./v1-form.ts";

/** How an older dialect writes what it answers with. */
export interface ResultNotation {
  /** What was sent became, or what is followed is: a task or a message. */
  readonly outcome: (outcome: JsonObject) => unknown;
  readonly task: (task: unknown) => unknown;
  readonly pushConfig: (config: JsonObject) => unknown;
  /** All of one task, each written already. */
  readonly pushConfigs: (configs: readonly unknown[], list: JsonObject) => unknown;
  readonly nothing: unknown;
  readonly card: (card: JsonObject) => unknown;
}

/** Writes results of any operation. Whatever form they were kept in, they are read as 1.0 first. */
export function resultWriter(
  notation: ResultNotation,
): (operation: A2aOperation, result: JsonObject) => unknown {
  return (operation, result) => {
    const plain = readAnswer(operation, result);
    switch (operation) {
      case "send":
      case "stream":
      case "subscribe":
        return notation.outcome(plain);
      case "get":
      case "cancel":
        return notation.task(plain);
      case "list":
        return mapMembers(plain, { tasks: (tasks) => asList(tasks, "tasks").map(notation.task) });
      case "push-create":
      case "push-get":
        return notation.pushConfig(plain);
      case "push-list": {
        const configs = asList(plain["configs"], "configs");
        return notation.pushConfigs(
          configs.map((config) => notation.pushConfig(config as JsonObject)),
          plain,
        );
      }
      case "push-delete":
        return notation.nothing;
      default:
        return notation.card(plain);
    }
  };
}
