import assert from "node:assert/strict";
import { EXAMPLE_IDS, type Operation } from "@a2a-relay/protocol";
import {
  type CallOptions,
  type HttpAnswer,
  type HttpRelay,
  openHttpRelay,
} from "../../packages/relay/testing/http-relay.ts";
import { sign } from "../../packages/relay/testing/signed-message.ts";

type ExampleName = keyof typeof EXAMPLE_IDS;

/** A request, its task and its thread. */
interface Sent {
  readonly message: string;
  readonly task: string;
  readonly thread: string;
}

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly body: unknown;
}

/** A relay that has what the examples of the operation table name. */
export class ExampleWorld implements AsyncDisposable {
  readonly relay: HttpRelay;
  /** The relay's ids for those of the examples. */
  ids: Readonly<Record<ExampleName, string>> = EXAMPLE_IDS;
  /** Stands in the request that the examples are about. */
  readonly secret = "只给知微的秘密";
  #signingSecret = "";
  #count = 0;

  private constructor(relay: HttpRelay) {
    this.relay = relay;
  }

  static async open(options: Parameters<typeof openHttpRelay>[0] = {}): Promise<ExampleWorld> {
    const env = { A2A_RELAY_EGRESS_ALLOW: "127.0.0.0/8", ...options.env };
    const world = new ExampleWorld(await openHttpRelay({ ...options, env }));
    await world.#made("/keys", { tenant: EXAMPLE_IDS.tenant });
    return world;
  }

  /** Makes all records anew, for agents of their own. */
  async prepare(): Promise<void> {
    this.#count += 1;
    const own = (name: "agent" | "peer" | "pushed"): string =>
      EXAMPLE_IDS[name].replace("@", `-${this.#count}@`);
    const [agent, peer, pushed] = [own("agent"), own("peer"), own("pushed")];
    for (const agent_id of [agent, peer]) await this.#made("/agents/register", { agent_id });
    // Nothing listens there, and nothing is sent to that agent.
    const endpoint = { callback_url: "http://127.0.0.1:9/hook", push: "webhook" };
    await this.#made("/agents/register", { agent_id: pushed, ...endpoint });
    const sent = await this.#request(peer, agent);
    const lease = await this.#lease(agent);
    await this.#complete(agent, peer);
    await this.#complete(agent, peer);
    const taken = await this.#made("/a2a/results/next", { agent });
    const result = taken["lease"] as { readonly message_id: string; readonly lease_id: string };
    await this.#request(peer, agent);
    const signing = await this.#made("/keys", { agent_id: agent, use: "sign" });
    this.#signingSecret = String(signing["key"]);
    this.ids = {
      ...EXAMPLE_IDS,
      ...sent,
      agent,
      peer,
      pushed,
      lease,
      result: result.message_id,
      resultLease: result.lease_id,
      queueTask: `${EXAMPLE_IDS.queueTask}-${this.#count}`,
      key: String((await this.#made("/keys", { agent_id: agent, verbs: ["mailbox.read"] }))["key_id"]),
      signingKey: String(signing["key_id"]),
      capability: String(
        (await this.#made("/capabilities/grant", { subject: agent, action: `a2a.send.${peer}` }))["id"],
      ),
    };
  }

  /** Sends the operation's example about the prepared records. */
  send(operation: Operation, options: CallOptions = {}): Promise<HttpAnswer> {
    const { method, url, body } = this.asked(operation);
    return this.relay.call(method, url, body, options);
  }

  asked(operation: Operation): Asked {
    const { params = {}, query = {}, body } = this.#withIds(operation.example);
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? "");
    const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
    return {
      method: operation.method,
      url: search.size === 0 ? path : `${path}?${search}`,
      body: operation.isSigned === true ? this.#signed(body) : body,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.relay[Symbol.asyncDispose]();
  }

  #withIds<Example>(example: Example): Example {
    let text = JSON.stringify(example);
    for (const name of Object.keys(EXAMPLE_IDS) as ExampleName[]) {
      if (this.ids[name] !== EXAMPLE_IDS[name]) text = text.replaceAll(EXAMPLE_IDS[name], this.ids[name]);
    }
    return JSON.parse(text) as Example;
  }

  #signed(body: object | undefined): object {
    const { signature: _, ...message } = { signature: "", ...body };
    const own = {
      id: `signed-${this.#count}`,
      nonce: crypto.randomUUID(),
      signed_at: new Date().toISOString(),
    };
    return sign({ key_id: this.ids.signingKey, key: this.#signingSecret }, { ...message, ...own });
  }

  async #request(from: string, to: string): Promise<Sent> {
    const asked = { from, to, type: "request", subject: this.secret, body: this.secret };
    const { receipt } = (await this.#made("/messages", asked)) as unknown as {
      readonly receipt: { readonly message_id: string; readonly task_id: string; readonly thread_id: string };
    };
    return { message: receipt.message_id, task: receipt.task_id, thread: receipt.thread_id };
  }

  async #lease(agent: string): Promise<string> {
    const { messages } = await this.#made(`/mailbox/${agent}/lease`, {});
    return (messages as [{ readonly lease: { readonly id: string } }])[0].lease.id;
  }

  /** A request that has its result. */
  async #complete(requester: string, worker: string): Promise<void> {
    const { task } = await this.#request(requester, worker);
    await this.#made(`/tasks/${task}/complete`, { text: "好", lease_id: await this.#lease(worker) });
  }

  async #made(path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.relay.post(path, body);
    assert.ok(answer.status < 300, `${path}: ${answer.text}`);
    return answer.json as unknown as Readonly<Record<string, unknown>>;
  }
}
