import assert from "node:assert/strict";
import type { A2aRelay } from "./a2a-relay.ts";

interface LeasedItem {
  readonly message_id: string;
  readonly message: Readonly<Record<string, unknown>> & { readonly body: string };
  readonly task_id?: string;
  readonly lease: { readonly id: string };
}

/** One message about a task, in the hands of its agent, which answers by the relay's own routes. */
export class TaskWork {
  readonly #agent: MailboxAgent;
  readonly #item: LeasedItem;

  constructor(agent: MailboxAgent, item: LeasedItem) {
    this.#agent = agent;
    this.#item = item;
  }

  get taskId(): string {
    return this.#item.task_id ?? "";
  }

  get text(): string {
    return this.#item.message.body;
  }

  /** The message as it lay in the mailbox. */
  get message(): Readonly<Record<string, unknown>> {
    return this.#item.message;
  }

  working(said: object = {}): Promise<void> {
    return this.#post("status", { state: "working", ...said });
  }

  /** Ends the turn: the answer comes as a separate message. */
  async ask(said: object, state: "input-required" | "auth-required" = "input-required"): Promise<void> {
    await this.#post("status", { state, ...said });
    await this.#agent.acknowledge(this.#item);
  }

  artifact(artifact: object, more: object = {}): Promise<void> {
    return this.#post("artifacts", { artifact, ...more });
  }

  complete(said: object = {}): Promise<void> {
    return this.#post("complete", said);
  }

  fail(said: object): Promise<void> {
    return this.#post("fail", said);
  }

  reject(said: object): Promise<void> {
    return this.#post("reject", said);
  }

  #post(verb: string, content: object): Promise<void> {
    return this.#agent.post(`/tasks/${this.taskId}/${verb}`, { ...content, lease_id: this.#item.lease.id });
  }
}

/** An agent that runs no server: it leases one message after the other and answers by plain HTTP. */
export class MailboxAgent implements AsyncDisposable {
  readonly id: string;
  readonly #relay: A2aRelay;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #left = new AbortController();
  readonly #work: (work: TaskWork) => Promise<void>;
  #done: Promise<void> = Promise.resolve();
  #failure: unknown;

  private constructor(
    relay: A2aRelay,
    id: string,
    {
      work,
      headers = {},
    }: {
      readonly work: (work: TaskWork) => Promise<void>;
      readonly headers?: Readonly<Record<string, string>>;
    },
  ) {
    this.#relay = relay;
    this.id = id;
    this.#work = work;
    this.#headers = headers;
  }

  /** Registers it and takes messages until it is disposed of; disposal fails if its work did. */
  static async start(
    relay: A2aRelay,
    id: string,
    work: (work: TaskWork) => Promise<void>,
    more: { readonly registration?: object; readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<MailboxAgent> {
    await relay.register(id, more.registration);
    const agent = new MailboxAgent(relay, id, { work, ...more });
    agent.#done = agent.#run();
    return agent;
  }

  /** Takes the next message, which must be there or come soon. */
  static async next(relay: A2aRelay, id: string): Promise<TaskWork> {
    const agent = new MailboxAgent(relay, id, { work: async () => undefined });
    const item = await agent.#lease();
    assert.ok(item, `no message for ${id}`);
    return new TaskWork(agent, item);
  }

  async post(path: string, content: object): Promise<void> {
    await this.#relay.ok("POST", path, content, this.#headers);
  }

  async acknowledge({ message_id, lease }: LeasedItem): Promise<void> {
    await this.post(`/mailbox/${this.id}/ack`, { leases: [{ message_id, lease_id: lease.id }] });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#left.abort();
    await this.#done;
    assert.ifError(this.#failure);
  }

  async #run(): Promise<void> {
    while (!this.#left.signal.aborted) {
      try {
        const item = await this.#lease();
        if (item === undefined) continue;
        if (item.task_id === undefined || item.message["type"] === "status") await this.acknowledge(item);
        else await this.#work(new TaskWork(this, item));
      } catch (reason) {
        if (!this.#left.signal.aborted) this.#failure = reason;
        return;
      }
    }
  }

  async #lease(): Promise<LeasedItem | undefined> {
    const response = await fetch(`${this.#relay.url}/mailbox/${this.id}/lease`, {
      method: "POST",
      headers: { "content-type": "application/json", ...this.#relay.headers, ...this.#headers },
      body: JSON.stringify({ wait_ms: 5_000 }),
      signal: this.#left.signal,
    });
    const { messages = [] } = (await response.json()) as { readonly messages?: readonly LeasedItem[] };
    return messages[0];
  }
}
