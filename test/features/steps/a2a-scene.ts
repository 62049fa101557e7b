import assert from "node:assert/strict";
import {
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  Message,
  SendMessageRequest,
  StreamResponse,
  Task,
} from "@a2a-js/sdk";
import { type Client, ClientFactory } from "@a2a-js/sdk/client";
import type { A2aMessage, A2aStreamResponse, A2aTask } from "@a2a-relay/protocol";
import type { Follower } from "../../support/follower.ts";

/** What a call came to, in 1.0. */
export interface A2aOutcome {
  readonly task?: A2aTask;
  readonly message?: A2aMessage;
}

/** An event of a stream; the wire gives its id. */
export interface SeenEvent {
  readonly id?: string | undefined;
  readonly event: A2aStreamResponse;
}

/** An answer as it came over the wire. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Readonly<Record<string, unknown>>;
}

/** The official client with JSON of 1.0 before and behind it. It finds its way by the card below `base`. */
export class OfficialCaller {
  readonly #client: Client;
  readonly #options: { readonly serviceParameters: Record<string, string> };

  private constructor(client: Client, apiKey: string | undefined) {
    this.#client = client;
    this.#options = { serviceParameters: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` } };
  }

  static async at(base: string, apiKey?: string): Promise<OfficialCaller> {
    return new OfficialCaller(await new ClientFactory().createFromUrl(`${base}/`), apiKey);
  }

  async send(params: object): Promise<A2aOutcome> {
    const sent = await this.#client.sendMessage(SendMessageRequest.fromJSON(params), this.#options);
    return "messageId" in sent
      ? { message: Message.toJSON(sent) as A2aMessage }
      : { task: Task.toJSON(sent) as A2aTask };
  }

  async *stream(params: object, signal: AbortSignal): AsyncGenerator<SeenEvent> {
    const options = { ...this.#options, signal };
    for await (const event of this.#client.sendMessageStream(SendMessageRequest.fromJSON(params), options)) {
      yield { event: StreamResponse.toJSON(event) as A2aStreamResponse };
    }
  }

  async get(id: string): Promise<A2aTask> {
    return Task.toJSON(await this.#client.getTask(GetTaskRequest.fromJSON({ id }), this.#options)) as A2aTask;
  }

  async cancel(id: string): Promise<A2aTask> {
    return Task.toJSON(
      await this.#client.cancelTask(CancelTaskRequest.fromJSON({ id }), this.#options),
    ) as A2aTask;
  }

  async taskIds(): Promise<readonly string[]> {
    const { tasks } = await this.#client.listTasks(ListTasksRequest.fromJSON({}), this.#options);
    return tasks.map(({ id }) => id);
  }
}

/** What a scenario knows of the A2A callers. */
export class A2aScene {
  /** The last task that a caller was told of. */
  taskId = "";
  /** Why the caller was refused, by the name of the SDK's error. */
  refusal: string | undefined;
  /** The path of the last card that was read. */
  cardPath = "";
  #caller: OfficialCaller | undefined;
  #pending: Promise<A2aOutcome> | undefined;
  #watching: Follower<SeenEvent> | undefined;
  #wire: Promise<WireAnswer> | undefined;

  get caller(): OfficialCaller {
    assert.ok(this.#caller, "no caller");
    return this.#caller;
  }

  set caller(caller: OfficialCaller) {
    this.#caller = caller;
  }

  get watching(): Follower<SeenEvent> {
    assert.ok(this.#watching, "no watcher");
    return this.#watching;
  }

  set watching(watching: Follower<SeenEvent>) {
    this.#watching = watching;
  }

  /** Lets a call run on; its answer is checked later. */
  begin(call: Promise<A2aOutcome>): void {
    call.catch(() => undefined);
    this.#pending = call;
  }

  async answer(): Promise<A2aOutcome> {
    assert.ok(this.#pending, "no agent was asked");
    const outcome = await this.#pending;
    this.taskId = outcome.task?.id ?? this.taskId;
    return outcome;
  }

  /** As `begin`, for clients that write A2A themselves. */
  beginOnWire(call: Promise<WireAnswer>): void {
    call.catch(() => undefined);
    this.#wire = call;
  }

  async wireAnswer(): Promise<WireAnswer> {
    assert.ok(this.#wire, "no agent was asked");
    return this.#wire;
  }
}

/** A message of 1.0 from the caller. */
export function userMessage(text: string, more: object = {}): object {
  return { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }], ...more };
}

export function textOf({ parts }: Pick<A2aMessage, "parts">): string {
  return parts.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("|");
}
