import assert from "node:assert/strict";
import { RelayError } from "@a2a-relay/client";
import { isRelayErrorCode } from "@a2a-relay/protocol";
import { Given, Then, When } from "@cucumber/cucumber";
import type { RelayWorld } from "./relay-world.ts";

const OPERATOR_KEY = "the-operators-own-key-0123456789";
const HOUR_MS = 3_600_000;

Given<RelayWorld>("a relay that asks for keys", async function () {
  this.operatorKey = OPERATOR_KEY;
  await this.start();
});

Given<RelayWorld>(
  "the agents {word}, {word} and {word} with their own keys",
  async function (first: string, second: string, third: string) {
    for (const id of [first, second, third]) await register(this, OPERATOR_KEY, id);
  },
);

Given<RelayWorld>("capabilities are on", async function () {
  this.flags["capabilities"] = "on";
  await this.restart();
});

Given<RelayWorld>(
  "the organisation {word} with an agent {word}",
  async function (tenant: string, id: string) {
    const { key } = await call(this, OPERATOR_KEY, "POST", "/keys", { tenant });
    await register(this, String(key), id, `${tenant}'s `);
  },
);

When<RelayWorld>("a caller without a key lists the agents", async function () {
  await this.attempt(() => this.clientWith(undefined).agents());
});

When<RelayWorld>("a caller with the key {string} lists the agents", async function (key: string) {
  await this.attempt(() => this.clientWith(key).agents());
});

When<RelayWorld>("acme's lulu lists the agents", async function () {
  const { agents } = await this.clientOf("acme's lulu").agents();
  this.named = agents.map(({ agent_id: id }) => id);
});

Then<RelayWorld>("it finds only {word}", function (id: string) {
  assert.deepEqual(this.named, [id]);
});

When<RelayWorld>("acme's lulu tries to write {string} to {word}", async function (body: string, to: string) {
  await this.attempt(() => this.clientOf("acme's lulu").send({ to, body }));
});

When<RelayWorld>(
  "{word}'s key tries to write {string} from {word} to {word}",
  async function (name: string, body: string, from: string, to: string) {
    await this.attempt(() => this.clientOf(name).send({ from, to, body }));
  },
);

When<RelayWorld>(
  "{word} wrote {string} to {word} with its own key",
  async function (name: string, body: string, to: string) {
    this.receipts.push((await this.clientOf(name).send({ to, body })).receipt);
  },
);

When<RelayWorld>("{word}'s key reads the mailbox of {word}", async function (name: string, agent: string) {
  await this.attempt(() => this.clientOf(name).readMailbox(agent));
});

Then<RelayWorld>("{word}'s key finds {string}", async function (name: string, body: string) {
  const { messages } = await this.clientOf(name).readMailbox(name);
  assert.deepEqual(
    messages.map(({ message }) => message.body),
    [body],
  );
});

When<RelayWorld>("the operator revokes {word}'s key", async function (name: string) {
  await call(this, OPERATOR_KEY, "POST", `/keys/${keyIdOf(this, name)}/revoke`);
});

When<RelayWorld>(
  "the operator rotates {word}'s key with an overlap of {int} hours",
  async function (name: string, hours: number) {
    const path = `/keys/${keyIdOf(this, name)}/rotate`;
    const { key } = await call(this, OPERATOR_KEY, "POST", path, { overlap_ms: hours * HOUR_MS });
    this.keys.set(`${name}'s new`, String(key));
  },
);

Then<RelayWorld>("{word}'s old key and its new one both work", async function (name: string) {
  for (const holder of [name, `${name}'s new`]) await this.clientOf(holder).readMailbox(name);
});

Then<RelayWorld>("only {word}'s new key works", async function (name: string) {
  await this.clientOf(`${name}'s new`).readMailbox(name);
  await this.attempt(() => this.clientOf(name).readMailbox(name));
  assert.equal(this.refusal?.code, "unauthenticated");
});

When<RelayWorld>(
  "{word}'s key asks {word} {string}",
  async function (name: string, to: string, body: string) {
    await this.attempt(async () => {
      this.receipts.push((await this.clientOf(name).send({ to, body, type: "request" })).receipt);
    });
  },
);

When<RelayWorld>("{word}'s key answers {string}", async function (name: string, text: string) {
  await this.attempt(() => this.clientOf(name).completeTask(this.taskId, { text }));
});

When<RelayWorld>("the operator grants {word} {word}", async function (subject: string, action: string) {
  await call(this, OPERATOR_KEY, "POST", "/capabilities/grant", { subject, action });
});

When<RelayWorld>(
  "the operator grants {word} {word} for {int} use",
  async function (subject: string, action: string, uses: number) {
    const scope = { version: 1, max_uses: uses };
    await call(this, OPERATOR_KEY, "POST", "/capabilities/grant", { subject, action, scope });
  },
);

When<RelayWorld>(
  "{word}'s key grants {word} {word}",
  async function (name: string, subject: string, action: string) {
    const key = this.keys.get(name);
    await this.attempt(() => call(this, key, "POST", "/capabilities/grant", { subject, action }));
  },
);

Then<RelayWorld>("the journal has a(n) {word} event by {word}", async function (type: string, actor: string) {
  const { events } = await this.client.events({ type });
  assert.deepEqual(
    events.map((event) => event.actor),
    [actor],
  );
});

Then<RelayWorld>(
  /^the journal has a (failed|passed) capability_check for (\S+)$/,
  async function (outcome: string, subject: string) {
    const { events } = await this.client.events({ type: "capability_check" });
    const last = events.at(-1)?.data;
    assert.deepEqual([last?.["agent_id"], last?.["passed"]], [subject, outcome === "passed"]);
  },
);

When<RelayWorld>("{word} takes the next task on the task-queue wire", async function (name: string) {
  const { task } = await call(this, this.keys.get(name), "POST", "/a2a/tasks/next", {});
  this.queued = task as RelayWorld["queued"];
});

Then<RelayWorld>("it is {string} from {word}", function (text: string, from: string) {
  assert.deepEqual([this.queued?.intent_text, this.queued?.sender.display], [text, from]);
});

When<RelayWorld>(
  "{word} posts the result {string} on the task-queue wire",
  async function (name: string, text: string) {
    const result = { task_id: this.queued?.id, status: "ok", content: [{ type: "text", text }] };
    await call(this, this.keys.get(name), "POST", "/a2a/results", result);
  },
);

Then<RelayWorld>(
  "{word} receives the answer {string} with its own key",
  async function (name: string, text: string) {
    const { messages } = await this.clientOf(name).readMailbox(name);
    assert.deepEqual(
      messages.map(({ message }) => message.body),
      [text],
    );
  },
);

async function register(world: RelayWorld, key: string, id: string, prefix = ""): Promise<void> {
  const name = id.slice(0, id.indexOf("@"));
  const answer = await call(world, key, "POST", "/agents/register", { agent_id: id, aliases: [name] });
  world.keys.set(prefix + name, String(answer["api_key"]));
}

function keyIdOf(world: RelayWorld, name: string): string {
  return world.keys.get(name)?.split(".", 1)[0] ?? "";
}

/** One call with the key; a refusal is thrown as the client does. */
async function call(
  world: RelayWorld,
  key: string | undefined,
  method: string,
  path: string,
  body: object = {},
): Promise<Readonly<Record<string, unknown>>> {
  const answer = await fetch(world.client.url + path, {
    method,
    headers: {
      "content-type": "application/json",
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(body),
  });
  const json = (await answer.json()) as Readonly<Record<string, unknown>>;
  if (answer.ok) return json;
  const { code, message } = (json["error"] ?? json) as { readonly code?: unknown; readonly message?: string };
  assert.ok(isRelayErrorCode(code), JSON.stringify(json));
  throw new RelayError(code, message ?? "");
}
