import assert from "node:assert/strict";
import { type MessageResponse, verifyWebhook } from "@a2a-relay/client";
import { type DataTable, Given, Then, When } from "@cucumber/cucumber";
import { answers, type PushedRequest, PushReceiver } from "../../support/push-receiver.ts";
import { textsIn } from "./delivery-steps.ts";
import { send } from "./message-steps.ts";
import { PATIENCE_MS, type RelayWorld } from "./relay-world.ts";

const HOUR_MS = 3_600_000;

/** One try, and one more very soon: the usual pauses are of no interest here. */
const ATTEMPTS_MS = "0,20";

Given<RelayWorld>("a relay that may call servers on this machine", async function () {
  this.flags["egress-allow"] = "127.0.0.1/32";
  this.flags["push-attempts-ms"] = ATTEMPTS_MS;
  await this.start();
});

Given<RelayWorld>("{word}'s server, which is called when there is a message", async function (name: string) {
  const receiver = this.use(await PushReceiver.open());
  const { agent_id } = await this.client.agent(name);
  const registration = { agent_id, callback_url: receiver.url, push: "webhook" } as const;
  const { push_secret: secret } = await this.client.register(registration);
  assert.ok(secret, "no secret was shown");
  this.delivery.receiver = receiver;
  this.delivery.pushSecret = secret;
});

Given<RelayWorld>("{word} wants notices only", async function (name: string) {
  const { agent_id } = await this.client.agent(name);
  await this.client.register({ agent_id, notice: true });
});

Given<RelayWorld>(/^\S+'s server answers ([\d, ]+)$/, function (statuses: string) {
  const { receiver } = this.delivery;
  receiver.requests.length = 0;
  receiver.answering = answers(...statuses.split(", ").map(Number));
});

When<RelayWorld>(
  "{word} writes {string} to {word} about {string}",
  async function (from: string, body: string, to: string, subject: string) {
    await send(this, { from, to, body, subject });
  },
);

Then<RelayWorld>(/^\S+'s server gets (".+")$/, async function (quoted: string) {
  const wanted = textsIn(quoted);
  assert.deepEqual((await received(this, wanted.length)).map(bodyOf), wanted);
});

Then<RelayWorld>(
  "{word}'s server gets {string} {int} times, under the same id",
  async function (_name: string, body: string, count: number) {
    const webhooks = await received(this, count);
    const { message_id: id } = this.receipt;
    assert.deepEqual(
      webhooks.map((webhook) => [bodyOf(webhook), webhook.id]),
      Array.from({ length: count }, () => [body, id]),
    );
  },
);

Then<RelayWorld>(
  "its signature is right, and for any other secret or message it is wrong",
  async function () {
    const [webhook] = await received(this, 1);
    assert.ok(webhook);
    const { headers, body } = webhook;
    const { pushSecret: secret } = this.delivery;
    const { type } = await verifyWebhook({ headers, body, secret });
    assert.equal(type, "message.available");
    const another = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
    const changed = body.replace("包裹", "账单");
    const refused = { code: "permission_denied" };
    await assert.rejects(verifyWebhook({ headers, body, secret: another }), refused);
    await assert.rejects(verifyWebhook({ headers, body: changed, secret }), refused);
  },
);

Then<RelayWorld>(
  "{word}'s server is told of a message from {word} about {string}, and not what is in it",
  async function (_name: string, from: string, subject: string) {
    const [webhook] = await received(this, 1);
    assert.ok(webhook);
    const { headers, body } = webhook;
    const { type, data } = await verifyWebhook({ headers, body, secret: this.delivery.pushSecret });
    const notice = data as Readonly<Record<string, unknown>>;
    assert.deepEqual([type, notice["sender_agent_id"], notice["subject"]], ["message.notice", from, subject]);
    const { message } = await this.client.message(this.receipt.message_id);
    assert.ok(!body.includes(message.body));
  },
);

When<RelayWorld>("all attempts are used up", async function () {
  for (const { message_id: id } of this.receipts) {
    assert.equal((await pushOf(this, id)).state, "failed");
  }
});

Then<RelayWorld>(/^the attempts were answered ([\d, ]+)$/, async function (statuses: string) {
  const { attempts } = await pushOf(this, this.receipt.message_id);
  assert.deepEqual(attempts.map(({ status }) => status).join(", "), statuses);
});

Then<RelayWorld>("{word}'s address is switched off, because it is gone", async function (name: string) {
  await this.client.events({ type: "push.disabled", wait_ms: PATIENCE_MS });
  const { state, reason = "" } = await this.client.push(name);
  assert.equal(state, "disabled");
  assert.match(reason, /410/);
});

When<RelayWorld>(
  "{word} asks for what came in the last {int} hours once more",
  async function (name: string, hours: number) {
    const since = new Date(Date.now() - hours * HOUR_MS).toISOString();
    const { replayed } = await this.client.replayPushes(name, { since });
    assert.equal(replayed, this.receipts.length);
  },
);

When<RelayWorld>(
  "{word} tries to be called at one of these",
  async function (agentId: string, table: DataTable) {
    const codes: (string | undefined)[] = [];
    for (const [callback_url = ""] of table.raw()) {
      await this.attempt(() => this.client.register({ agent_id: agentId, callback_url, push: "webhook" }));
      codes.push(this.refusal?.code);
    }
    this.delivery.refusals = codes;
  },
);

Then<RelayWorld>("the relay refuses each of them", function () {
  const { refusals } = this.delivery;
  assert.deepEqual(
    refusals,
    refusals.map(() => "invalid_argument"),
  );
});

function received(world: RelayWorld, count: number): Promise<readonly PushedRequest[]> {
  return world.delivery.receiver.arrived(count);
}

function bodyOf({ body }: PushedRequest): string {
  const { data } = JSON.parse(body) as { data: { message: { body: string } } };
  return data.message.body;
}

/** What became of pushing the message, once it is clear. */
async function pushOf(world: RelayWorld, id: string): Promise<NonNullable<MessageResponse["push"]>> {
  const endMs = Date.now() + PATIENCE_MS;
  for (let since = ""; Date.now() < endMs;) {
    const { push } = await world.client.message(id);
    if (push !== undefined && push.state !== "pending") return push;
    const query = { wait_ms: 100, ...(since === "" ? {} : { since }) };
    since = (await world.client.events(query)).cursor;
  }
  throw new Error(`nothing has become of pushing ${id}`);
}
