import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { EventView } from "@a2a-relay/protocol";
import { type HttpAnswer, type HttpRelay, openHttpRelay } from "../../packages/relay/testing/http-relay.ts";
import { type Caller, CALLERS, type Fixture, ROUTES, type Row } from "./who-may-do-what.ts";

const OPERATOR_KEY = "the-operators-own-key-0123456789";
const LULU = "lulu@kamac";
const KAMES = "kames@desk";
/** Stands in everything that a stranger must not see. */
const SECRET = "只给知微的秘密";

/** A relay with keys, two tenants that both have a lulu, and everybody's key. */
class World implements AsyncDisposable, Fixture {
  readonly relay: HttpRelay;
  readonly keys = new Map<Caller, string | undefined>();
  messageId = "";
  taskId = "";
  keyId = "";
  signingKey = { key_id: "", key: "" };
  capabilityId = "";

  private constructor(relay: HttpRelay) {
    this.relay = relay;
  }

  static async open(): Promise<World> {
    const headers = { authorization: `Bearer ${OPERATOR_KEY}` };
    const relay = await openHttpRelay({ env: { A2A_RELAY_API_KEY: OPERATOR_KEY }, headers });
    const world = new World(relay);
    world.keys.set("root", OPERATOR_KEY);
    world.keys.set("operator", await world.newKey({}));
    await world.as("root", "POST", "/agents/register", { agent_id: KAMES });
    world.keys.set("kames", await world.newKey({ agent_id: KAMES }));
    world.keys.set("acme's operator", await world.newKey({ tenant: "acme" }));
    world.keys.set("anonymous", undefined);
    world.keys.set("unknown", "key_0190abcd-0000-7000-8000-000000000000.zzzzzzzzzzzzzzzz");
    return world;
  }

  /** What the calls are about: a request from zhiwei to lulu with a secret in it, and a key of lulu's. */
  async prepare(): Promise<void> {
    // It may have been removed by the call before, and its keys with it.
    await this.as("root", "POST", "/agents/register", { agent_id: LULU });
    await this.as("acme's operator", "POST", "/agents/register", { agent_id: LULU });
    this.keys.set("lulu", await this.newKey({ agent_id: LULU }));
    this.keys.set("lulu, limited", await this.newKey({ agent_id: LULU, verbs: ["threads.read"] }));
    this.keys.set("acme's lulu", await this.newKey({ tenant: "acme", agent_id: LULU }));
    const ask = { from: "zhiwei", to: LULU, type: "request", subject: SECRET, body: SECRET };
    const { receipt } = (await this.as("root", "POST", "/messages", ask)) as unknown as {
      readonly receipt: { readonly message_id: string; readonly task_id: string };
    };
    this.messageId = receipt.message_id;
    this.taskId = receipt.task_id;
    this.keyId = String((await this.as("root", "POST", "/keys", { agent_id: LULU }))["key_id"]);
    const signing = await this.as("root", "POST", "/keys", { agent_id: LULU, use: "sign" });
    this.signingKey = { key_id: String(signing["key_id"]), key: String(signing["key"]) };
    const grant = { subject: LULU, action: "a2a.send.zhiwei" };
    this.capabilityId = String((await this.as("root", "POST", "/capabilities/grant", grant))["id"]);
  }

  async newKey(body: object): Promise<string> {
    return String((await this.as("root", "POST", "/keys", body))["key"]);
  }

  async call(caller: Caller, row: Row): Promise<HttpAnswer> {
    const [method = "", path = ""] = row.route.split(" ");
    const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => row.params?.(this)[name] ?? `{${name}}`);
    const key = this.keys.get(caller);
    const body = row.body?.(this) ?? (method === "POST" ? {} : undefined);
    return this.relay.call(method, url + (row.query ?? ""), body, {
      headers: { authorization: key === undefined ? "" : `Bearer ${key}` },
    });
  }

  async as(
    caller: Caller,
    method: string,
    path: string,
    body?: object,
  ): Promise<Readonly<Record<string, unknown>>> {
    const headers = { authorization: `Bearer ${this.keys.get(caller) ?? OPERATOR_KEY}` };
    const answer = await this.relay.call(method, path, body, { headers });
    assert.ok(answer.status < 300, answer.text);
    return answer.json as unknown as Readonly<Record<string, unknown>>;
  }

  async events(
    tenant: string,
    since: string,
  ): Promise<{ readonly events: readonly EventView[]; readonly cursor: string }> {
    return (await this.relay.get(`/t/${tenant}/events?since=${since}`)).json;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.relay[Symbol.asyncDispose]();
  }
}

describe("who may do what", () => {
  it("has a row for every route of the relay, and no row without a route", async () => {
    await using relay = await openHttpRelay();
    const { paths } = (await relay.get("/openapi.json")).json as unknown as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    };
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    assert.deepEqual(ROUTES.map(({ route }) => route).toSorted(), described.toSorted());
  });

  for (const row of ROUTES) {
    describe(row.route, () => {
      let world: World;
      before(async () => {
        world = await World.open();
        await world.prepare();
      });
      after(() => world[Symbol.asyncDispose]());

      // Refused callers come first: they change nothing, so they share what was prepared.
      const refusedFirst = CALLERS.toSorted((a, b) => Number(mayCall(row, a)) - Number(mayCall(row, b)));
      for (const caller of refusedFirst) {
        if (mayCall(row, caller)) it(`is open to ${caller}`, () => assertOpen(world, row, caller));
        else
          it(`is closed to ${caller}, on record and without a word too many`, () =>
            assertClosed(world, row, caller));
      }
    });
  }
});

function mayCall(row: Row, caller: Caller): boolean {
  return row.open === true || row.to.includes(caller);
}

async function assertOpen(world: World, row: Row, caller: Caller): Promise<void> {
  await world.prepare();
  const answer = await world.call(caller, row);
  assert.notEqual(answer.status, 401, answer.text);
  // Those of another tenant may call, and meet only their own.
  if (caller.startsWith("acme")) {
    assertTellsNothing(answer.text, caller);
    if (row.otherTenant !== undefined) assert.equal(answer.status, row.otherTenant, answer.text);
    return;
  }
  const expected = row.answers ?? [200, 201];
  assert.ok(expected.includes(answer.status), `${answer.status}: ${answer.text.slice(0, 300)}`);
}

async function assertClosed(world: World, row: Row, caller: Caller): Promise<void> {
  const tenant = caller.startsWith("acme") ? "acme" : "default";
  const { cursor } = await world.events(tenant, "latest");
  const answer = await world.call(caller, row);
  const isStranger = caller === "anonymous" || caller === "unknown";
  const refusal = row.hidden?.includes(caller) === true ? 404 : 403;
  const status = isStranger ? 401 : refusal;
  assert.equal(answer.status, status, answer.text.slice(0, 300));
  assertTellsNothing(answer.text, caller);
  const { events: news } = await world.events(tenant, cursor);
  const types = isStranger ? ["access.unauthenticated"] : ["access.denied", "capability_check"];
  const recorded = news.filter(({ type }) => types.includes(type));
  assert.equal(recorded.length, 1, `recorded: ${JSON.stringify(news)}`);
  // Nothing else happened.
  assert.deepEqual(news, recorded);
  assert.doesNotMatch(JSON.stringify(recorded), new RegExp(SECRET));
}

function assertTellsNothing(text: string, caller: Caller): void {
  assert.doesNotMatch(text, new RegExp(SECRET));
  // It was asked by zhiwei and knows the name.
  if (!caller.startsWith("lulu")) assert.doesNotMatch(text, /zhiwei@known-blocks1/);
}
