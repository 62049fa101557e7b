import type { Part } from "../part.ts";
import { type JsonObject, mapMembers } from "./json-members.ts";
import { readArtifact, readMessage, readStatus, readTask } from "./v1-form.ts";

/** What an older dialect writes otherwise than 1.0, from the inside out. */
export interface Notation {
  readonly part: (part: Part) => Part;
  readonly role: (role: unknown) => unknown;
  readonly state: (state: unknown) => unknown;
  /** This and the next ones are called with everything inside written already. */
  readonly message: (message: JsonObject) => JsonObject;
  readonly artifact: (artifact: JsonObject, index: number) => JsonObject;
  readonly task: (task: JsonObject) => JsonObject;
}

/** Writes what 1.0 holds in another notation. Whatever form it was kept in, it is read as 1.0 first. */
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
