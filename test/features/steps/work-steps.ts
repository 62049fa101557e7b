import assert from "node:assert/strict";
import { Given, Then, When } from "@cucumber/cucumber";
import { send } from "./message-steps.ts";
import { type LeasedMessage, PATIENCE_MS, type RelayWorld } from "./relay-world.ts";

const MINUTE_MS = 60_000;
/** The relay of the features checks for silent workers every 10 ms; by then it would have given the work away. */
const UNCHANGED_MS = 300;

When<RelayWorld>(
  "{word} asks/asked {word} {string}",
  async function (from: string, to: string, body: string) {
    await send(this, { from, to, type: "request", body });
  },
);

Given<RelayWorld>(
  "{word} asked {word} {string}, which may safely be done twice",
  async function (from: string, to: string, body: string) {
    const idempotency = { duplicate_safety: "idempotent", key: "the-work" } as const;
    await send(this, { from, to, type: "request", body, idempotency });
  },
);

Given<RelayWorld>("worker {word} of {word} took the message", async function (worker: string, agent: string) {
  await takeTheMessage(this, worker, agent);
});

Given<RelayWorld>(
  "worker {word} of {word} took the message for 1 minute",
  async function (worker: string, agent: string) {
    await takeTheMessage(this, worker, agent, MINUTE_MS);
  },
);

When<RelayWorld>(
  "the workers {word} and {word} of {word} each take a message at the same moment",
  async function (first: string, second: string, agent: string) {
    await Promise.all([first, second].map((worker) => take(this, worker, agent)));
  },
);

Then<RelayWorld>("they hold two different messages", function () {
  const ids = [...this.held.values()].map((message) => message.message_id);
  assert.equal(new Set(ids).size, 2);
});

Then<RelayWorld>(
  "worker {word} of {word} can take the message",
  async function (worker: string, agent: string) {
    await takeTheMessage(this, worker, agent);
  },
);

Then<RelayWorld>("no other worker of {word} can take the message", async function (agent: string) {
  const { messages } = await this.client.lease(agent, { worker: "another", wait_ms: UNCHANGED_MS });
  assert.deepEqual(messages, []);
});

When<RelayWorld>("{word} finishes with {string}", async function (worker: string, text: string) {
  await finish(this, worker, text);
});

When<RelayWorld>("{word} tries to finish with {string}", async function (worker: string, text: string) {
  await this.attempt(() => finish(this, worker, text));
});

When<RelayWorld>("{word} gives up on it, because {string}", async function (worker: string, reason: string) {
  const { message_id, lease, message } = heldBy(this, worker);
  await this.client.failMessage(message.to, { message_id, lease_id: lease.id, reason });
});

When<RelayWorld>(
  "the operator gives/gave the message back to the mailbox, because {string}",
  async function (reason: string) {
    const { message_id } = this.receipt;
    const command = { action: "requeue", duplicate_risk: "operator_accepted" } as const;
    await this.client.repair({ message_id, reason, command });
  },
);

When<RelayWorld>("{word} answers/answered {string}", async function (agent: string, body: string) {
  await answer(this, agent, body);
});

When<RelayWorld>("{word} tries to answer {string}", async function (agent: string, body: string) {
  await this.attempt(() => answer(this, agent, body));
});

When<RelayWorld>("{word} wants to know {string}", async function (agent: string, body: string) {
  await answer(this, agent, body, { needs_reply: true });
});

When<RelayWorld>("{word} adds {string}", async function (agent: string, body: string) {
  const { recipient: to } = this.receipt;
  await this.client.send({ from: agent, to, body, task_id: this.taskId });
});

When<RelayWorld>("{word} cancels the task", async function (_agent: string) {
  await this.client.cancelTask(this.taskId);
});

Then<RelayWorld>("the task is {word}", async function (state: string) {
  assert.equal((await this.client.task(this.taskId)).state, state);
});

Then<RelayWorld>("{word} receives the answer {string}", async function (agent: string, text: string) {
  const { messages } = await this.client.readMailbox(agent, { wait_ms: PATIENCE_MS });
  const answers = messages.filter(({ message }) => message.reply_to === this.receipt.message_id);
  assert.deepEqual(
    answers.map(({ message }) => message.body),
    [text],
  );
});

Then<RelayWorld>(/^the message's receipts are (.+)$/, async function (stages: string) {
  const { receipts } = await this.client.message(this.receipt.message_id);
  assert.deepEqual(
    receipts.map((receipt) => receipt.stage),
    stages.split(", "),
  );
});

async function take(
  world: RelayWorld,
  worker: string,
  agent: string,
  leaseMs?: number,
): Promise<LeasedMessage> {
  const request = { worker, wait_ms: PATIENCE_MS, ...(leaseMs === undefined ? {} : { lease_ms: leaseMs }) };
  const [message] = (await world.client.lease(agent, request)).messages;
  assert.ok(message, `there was nothing to take for ${worker}`);
  world.held.set(worker, message);
  return message;
}

async function takeTheMessage(
  world: RelayWorld,
  worker: string,
  agent: string,
  leaseMs?: number,
): Promise<void> {
  const message = await take(world, worker, agent, leaseMs);
  assert.equal(message.message_id, world.receipt.message_id);
}

function heldBy(world: RelayWorld, worker: string): LeasedMessage {
  const message = world.held.get(worker);
  assert.ok(message, `${worker} holds nothing`);
  return message;
}

async function finish(world: RelayWorld, worker: string, text: string): Promise<void> {
  const { task_id: taskId, lease } = heldBy(world, worker);
  assert.ok(taskId, `${worker} holds no task`);
  await world.client.completeTask(taskId, { text, lease_id: lease.id });
}

/** An agent answers a message that it has read. */
async function answer(
  world: RelayWorld,
  agent: string,
  body: string,
  more: { readonly needs_reply?: true } = {},
): Promise<void> {
  await world.client.readMailbox(agent);
  const { message } = await world.client.message(world.receipt.message_id);
  const { id: reply_to, from: to } = message;
  await world.client.send({ from: agent, to, type: "reply", reply_to, body, ...more });
}
