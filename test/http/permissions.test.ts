import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  a2aEndpoints,
  errorsOf,
  EXAMPLE_IDS,
  isRelayErrorCode,
  type EventView,
  type Operation,
  operations,
  operationsIn,
  type Verb,
  VERBS,
} from "@a2a-relay/protocol";
import type { HttpAnswer } from "../../packages/relay/testing/http-relay.ts";
import { ExampleWorld } from "../support/example-world.ts";
import { CALLERS, ROWS, type Row } from "./permissions.ts";

const OPERATOR_KEY = "the-operators-own-key-0123456789";
const ACME = EXAMPLE_IDS.tenant;
const ALL = [...operationsIn(operations), ...operationsIn(a2aEndpoints)];
const WITH_ITS_VERBS = "an operator's key with its verbs only";

/** A relay with keys, two tenants that both have a lulu, and the key of every caller. */
class World implements AsyncDisposable {
  readonly #examples: ExampleWorld;
  readonly #keys = new Map<string, string | undefined>();

  private constructor(examples: ExampleWorld) {
    this.#examples = examples;
  }

  static async open(): Promise<World> {
    const headers = { authorization: `Bearer ${OPERATOR_KEY}` };
    const world = new World(await ExampleWorld.open({ env: { A2A_RELAY_API_KEY: OPERATOR_KEY }, headers }));
    world.#keys.set("root", OPERATOR_KEY);
    world.#keys.set("anonymous", undefined);
    world.#keys.set("unknown", "key_0190abcd-0000-7000-8000-000000000000.zzzzzzzzzzzzzzzz");
    await world.#makeKey("operator", {});
    await world.#makeKey("acme's operator", { tenant: ACME });
    return world;
  }

  /** What the calls are about, made anew, since a call may change or remove it. */
  async prepare(operation: Operation, row: Row | undefined): Promise<void> {
    await this.#examples.prepare();
    const { agent, pushed } = this.#examples.ids;
    await this.#made(`/t/${ACME}/agents/register`, { agent_id: agent });
    await this.#makeKey("lulu", { agent_id: agent });
    await this.#makeKey("kames", { agent_id: pushed });
    await this.#makeKey("acme's lulu", { tenant: ACME, agent_id: agent });
    const { verbs } = operation;
    if (verbs.length > 0)
      await this.#makeKey(WITH_ITS_VERBS, { verbs: row?.makesKey === true ? VERBS : verbs });
    for (const verb of verbs) {
      await this.#makeKey(without(verb), { verbs: VERBS.filter((each) => each !== verb) });
    }
  }

  call(caller: string, operation: Operation): Promise<HttpAnswer> {
    const key = this.#keys.get(caller);
    return this.#examples.send(operation, {
      headers: { authorization: key === undefined ? "" : `Bearer ${key}` },
    });
  }

  /** The events of a tenant after a cursor. */
  async events(
    tenant: string,
    since: string,
  ): Promise<{ readonly events: readonly EventView[]; readonly cursor: string }> {
    return (await this.#examples.relay.get(`/t/${tenant}/events?since=${since}`)).json;
  }

  get secret(): string {
    return this.#examples.secret;
  }

  /** The text holds neither the request that lulu got nor a name that the caller did not give. */
  assertTellsNothing(text: string, caller: string, operation: Operation): void {
    const { ids } = this.#examples;
    assert.ok(!text.includes(this.secret), text);
    const isKnown = caller === "lulu" || JSON.stringify(this.#examples.asked(operation)).includes(ids.peer);
    if (!isKnown) assert.ok(!text.includes(ids.peer), text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#examples[Symbol.asyncDispose]();
  }

  async #makeKey(caller: string, body: object): Promise<void> {
    this.#keys.set(caller, (await this.#made("/keys", body)).json.key);
  }

  async #made(path: string, body: object): Promise<HttpAnswer> {
    const answer = await this.#examples.relay.post(path, body);
    assert.ok(answer.status < 300, answer.text);
    return answer;
  }
}

describe("who may do what", () => {
  it("has a row for every operation that is not open to all, and no row without an operation", () => {
    const closed = ALL.filter(({ open }) => open !== true).map(({ name }) => name);
    assert.deepEqual(Object.keys(ROWS).toSorted(), closed.toSorted());
  });

  for (const operation of ALL) {
    const row = ROWS[operation.name];
    const may = (caller: string): boolean => mayCall(row, caller);
    // Refused callers change nothing, so they share what was prepared.
    const refused = callersOf(operation).filter((caller) => !may(caller));
    it(`${operation.name} is closed to ${refused.join(", ") || "no caller"}, open to the others`, async () => {
      // One relay records only so many strangers a minute.
      await using world = await World.open();
      await world.prepare(operation, row);
      for (const caller of refused) await assertClosed(world, operation, row, caller);
      for (const caller of callersOf(operation).filter(may)) await assertOpen(world, operation, row, caller);
    });
  }
});

function without(verb: Verb): string {
  return `an operator's key without ${verb}`;
}

function callersOf({ verbs }: Operation): readonly string[] {
  return [...CALLERS, ...(verbs.length === 0 ? [] : [WITH_ITS_VERBS]), ...verbs.map(without)];
}

function mayCall(row: Row | undefined, caller: string): boolean {
  if (row === undefined) return true;
  const to: readonly string[] = row.to;
  return to.includes(caller === WITH_ITS_VERBS ? "operator" : caller);
}

async function assertOpen(
  world: World,
  operation: Operation,
  row: Row | undefined,
  caller: string,
): Promise<void> {
  await world.prepare(operation, row);
  const { status, text } = await world.call(caller, operation);
  assertDescribed(operation, text);
  const said = `${caller}: ${status} ${text.slice(0, 300)}`;
  // Those of another tenant may call, and meet only their own.
  if (caller.startsWith("acme")) {
    assert.notEqual(status, 401, said);
    world.assertTellsNothing(text, caller, operation);
    if (row?.otherTenant !== undefined) assert.equal(status, row.otherTenant, said);
    return;
  }
  const expected = row?.answers ?? [200, 201];
  assert.ok(expected.includes(status), said);
}

async function assertClosed(
  world: World,
  operation: Operation,
  row: Row | undefined,
  caller: string,
): Promise<void> {
  const tenant = caller.startsWith("acme") ? ACME : "default";
  const { cursor } = await world.events(tenant, "latest");
  const { status, text } = await world.call(caller, operation);
  assertDescribed(operation, text);
  const hidden: readonly string[] = row?.hidden ?? [];
  const isStranger = caller === "anonymous" || caller === "unknown";
  const refusal = hidden.includes(caller) ? 404 : 403;
  assert.equal(status, isStranger ? 401 : refusal, `${caller}: ${text.slice(0, 300)}`);
  world.assertTellsNothing(text, caller, operation);
  const { events: news } = await world.events(tenant, cursor);
  const types = isStranger ? ["access.unauthenticated"] : ["access.denied", "capability_check"];
  const recorded = news.filter(({ type }) => types.includes(type));
  assert.equal(recorded.length, 1, `${caller}: recorded ${JSON.stringify(news)}`);
  // Nothing else happened.
  assert.deepEqual(news, recorded);
  assert.ok(!JSON.stringify(recorded).includes(world.secret));
}

/** An error of the native wires is one that the operation's entry lists. */
function assertDescribed(operation: Operation, text: string): void {
  const code = /^\{(?:"error":\{|"kind":"error".*?)"code":"(\w+)"/.exec(text)?.[1];
  if (isRelayErrorCode(code)) assert.ok(errorsOf(operation).includes(code), `${operation.name}: ${code}`);
}
