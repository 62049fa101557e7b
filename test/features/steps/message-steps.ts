import assert from "node:assert/strict";
import { type MessageInput, POSTMASTER, type RelayErrorCode } from "@a2a-relay/client";
import { Given, Then, When } from "@cucumber/cucumber";
import { PATIENCE_MS, type RelayWorld } from "./relay-world.ts";

/** Why the relay may say no, in the words of the features. */
const REASONS: Readonly<Record<string, RelayErrorCode>> = {
  "another worker has taken over": "lease_lost",
  "it does not know them": "unauthenticated",
  "it was posted before": "conflict",
  "no agent has that name": "unknown_agent",
  "that is not allowed": "permission_denied",
  "the key belongs to another message": "conflict",
  "the task is finished": "task_finished",
  "the task was canceled": "task_canceled",
  "two agents have that name": "ambiguous_agent",
};

const UNITS_MS: Readonly<Record<string, number>> = {
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
};

Given<RelayWorld>("a relay", async function () {
  await this.start();
});

Given<RelayWorld>("the agents {word} and {word}", async function (first: string, second: string) {
  for (const id of [first, second]) {
    await this.client.register({ agent_id: id, aliases: [id.slice(0, id.indexOf("@"))] });
  }
});

Given<RelayWorld>("an agent {word} that people call {string}", async function (id: string, name: string) {
  await this.client.register({ agent_id: id, display_name: name });
});

When<RelayWorld>(
  "{word} writes/wrote {string} to {word}",
  async function (from: string, body: string, to: string) {
    await send(this, { from, to, body });
  },
);

When<RelayWorld>(
  "{word} writes/wrote {string} to {word} under the key {string}",
  async function (from: string, body: string, to: string, key: string) {
    await send(this, { from, to, body, idempotency_key: key });
  },
);

When<RelayWorld>(
  "{word} sends the same message again under the key {string}",
  async function (from: string, key: string) {
    const { message } = await this.client.message(this.receipt.message_id);
    await send(this, { from, to: message.to, body: message.body, idempotency_key: key });
  },
);

When<RelayWorld>(
  "{word} tries to write {string} to {word}",
  async function (from: string, body: string, to: string) {
    await this.attempt(() => send(this, { from, to, body }));
  },
);

When<RelayWorld>(
  "{word} tries to write {string} to {word} under the key {string}",
  async function (from: string, body: string, to: string, key: string) {
    await this.attempt(() => send(this, { from, to, body, idempotency_key: key }));
  },
);

When<RelayWorld>("{int} {word} pass", function (count: number, unit: string) {
  const unitMs = UNITS_MS[unit];
  assert.ok(unitMs, `${unit} is no unit of time here`);
  this.letPass(count * unitMs);
});

When<RelayWorld>(/^(\S+) reads its messages(?: once more)?$/, async function (reader: string) {
  this.found = (await this.client.readMailbox(reader)).messages;
});

When<RelayWorld>("{word} acknowledges it", async function (reader: string) {
  const ids = this.found.map((item) => item.message_id);
  const { acknowledged } = await this.client.ack(reader, { message_ids: ids });
  assert.equal(acknowledged, ids.length);
});

Then<RelayWorld>("it finds {string} from {word}", function (body: string, from: string) {
  const found = this.found.map(({ message }) => ({ body: message.body, from: message.from }));
  assert.deepEqual(found, [{ body, from }]);
});

Then<RelayWorld>("it finds nothing", function () {
  assert.deepEqual(this.found, []);
});

Then<RelayWorld>("{word} has {int} message(s)", async function (reader: string, count: number) {
  const { messages } = await this.client.readMailbox(reader, { peek: true });
  assert.equal(messages.length, count);
});

Then<RelayWorld>("the relay answers with the same receipt", function () {
  const [first, second] = this.receipts.slice(-2);
  assert.deepEqual(second, first);
});

Then<RelayWorld>(/^the relay refuses, because (.+)$/, function (reason: string) {
  assert.ok(this.refusal, "the relay did not refuse");
  assert.equal(this.refusal.code, REASONS[reason], this.refusal.message);
});

Then<RelayWorld>("it names {word} and {word}", function (first: string, second: string) {
  assert.deepEqual(this.refusal?.details?.["candidates"], [first, second]);
});

Then<RelayWorld>(
  "{word} receives a notice that the message is {word}",
  async function (reader: string, state: string) {
    const notice = await noticeTo(this, reader);
    assert.equal(notice["delivery_state"], state);
  },
);

Then<RelayWorld>(
  "{word} receives a notice that the message is {word}, because {string}",
  async function (reader: string, state: string, reason: string) {
    assert.deepEqual(await noticeTo(this, reader), { delivery_state: state, reason });
  },
);

export async function send(world: RelayWorld, message: MessageInput): Promise<void> {
  const { receipt } = await world.client.send(message);
  world.receipts.push(receipt);
}

/** What the relay's own message about the message says for programs. */
async function noticeTo(world: RelayWorld, reader: string): Promise<Readonly<Record<string, unknown>>> {
  const { messages } = await world.client.readMailbox(reader, { wait_ms: PATIENCE_MS });
  const notice = messages.find(({ message }) => message.reply_to === world.receipt.message_id)?.message;
  assert.equal(notice?.from, POSTMASTER);
  return notice["notice"] as Readonly<Record<string, unknown>>;
}
