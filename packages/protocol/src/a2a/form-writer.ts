import type { Part } from "../model/part.ts";
import type { A2aOperation } from "./a2a-dialect.ts";
import { readAnswer } from "./answer-reader.ts";
import { type JsonObject, mapMembers } from "./json-members.ts";
import { asList, readArtifact, readMessage, readStatus, readTask } from "./v1-form.ts";

/** How an older dialect differs from 1.0, from the inside out. */
export interface Notation {
  readonly part: (part: Part) => Part;
  readonly role: (role: unknown) => unknown;
  readonly state: (state: unknown) => unknown;
  /** Called after everything inside the message is written; so are the next two. */
  readonly message: (message: JsonObject) => JsonObject;
  readonly artifact: (artifact: JsonObject, index: number) => JsonObject;
  readonly task: (task: JsonObject) => JsonObject;
}

/** Converts 1.0 into another notation. Reads the value as 1.0 first, whatever form it was stored in. */
export class FormWriter {
  readonly #notation: Notation;

  constructor(notation: Notation) {
    this.#notation = notation;
  }

  message(value: unknown): JsonObject {
    const { message, part, role } = this.#notation;
    return message(
      mapMembers(readMessage(value), { role, parts: (parts) => (parts as readonly Part[]).map(part) }),
    );
  }

  status(value: unknown): JsonObject {
    return mapMembers(readStatus(value), {
      state: this.#notation.state,
      message: (message) => this.message(message),
    });
  }

  artifact(value: unknown, index: number): JsonObject {
    const { artifact, part } = this.#notation;
    const written = mapMembers(readArtifact(value), {
      parts: (parts) => (parts as readonly Part[]).map(part),
    });
    return artifact(written, index);
  }

  task(value: unknown): JsonObject {
    const written = mapMembers(readTask(value), {
      status: (status) => this.status(status),
      artifacts: (artifacts) =>
        (artifacts as readonly unknown[]).map((one, index) => this.artifact(one, index)),
      history: (history) => (history as readonly unknown[]).map((one) => this.message(one)),
    });
    return this.#notation.task(written);
  }
}

/** How an older dialect writes answers. */
export interface ResultNotation {
  /** A task or a message. */
  readonly outcome: (outcome: JsonObject) => unknown;
  readonly task: (task: unknown) => unknown;
  readonly pushConfig: (config: JsonObject) => unknown;
  /** All of one task, each already written. */
  readonly pushConfigs: (configs: readonly unknown[], list: JsonObject) => unknown;
  readonly nothing: unknown;
  readonly card: (card: JsonObject) => unknown;
}

/** Writes results of any operation. Reads them as 1.0 first, whatever form they were stored in. */
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
