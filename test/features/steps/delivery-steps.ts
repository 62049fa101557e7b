import assert from "node:assert/strict";
import { RelayClient, RelayError, signMessage } from "@a2a-relay/client";
import { Given, Then, When } from "@cucumber/cucumber";
import { BreakableLine } from "../../support/breakable-line.ts";
import { Follower } from "../../support/follower.ts";
import { send } from "./message-steps.ts";
import { PATIENCE_MS, type RelayWorld } from "./relay-world.ts";

Given<RelayWorld>("{word} listens to its mailbox", async function (name: string) {
  await listen(this, name, undefined);
});

Given<RelayWorld>("{word} listens to its mailbox with its own key", async function (name: string) {
  await listen(this, name, this.keys.get(name));
});

When<RelayWorld>("the relay is restarted", async function () {
  await this.restart();
});

When<RelayWorld>(
  "{word} writes {int} messages to {word}, and the connection breaks after each {int} that {word} hears",
  async function (from: string, count: number, to: string, each: number, listener: string) {
    const { line } = this.delivery;
    assert.ok(line, "no agent listens");
    const writing = (async (): Promise<void> => {
      for (let number = 1; number <= count; number += 1) {
        await send(this, { from, to, body: `第 ${number} 封` });
      }
    })();
    for (let heard = each; heard < count; heard += each) {
      await this.delivery.listener(listener).sees(heard, PATIENCE_MS);
      line.cut();
    }
    await writing;
  },
);

Then<RelayWorld>(/^(\S+) hears (".+")$/, async function (name: string, quoted: string) {
  const wanted = textsIn(quoted);
  const heard = await this.delivery.listener(name).sees(wanted.length, PATIENCE_MS);
  assert.deepEqual(
    heard.map(({ item }) => item.message.body),
    wanted,
  );
});

Then<RelayWorld>(
  "{word} hears each of them once, in the order they were written",
  async function (name: string) {
    const heard = await this.delivery.listener(name).sees(this.receipts.length, PATIENCE_MS);
    assert.deepEqual(
      heard.map(({ item }) => item.message_id),
      this.receipts.map((receipt) => receipt.message_id),
    );
  },
);

Then<RelayWorld>("the message is on record as delivered", async function () {
  const { events } = await this.client.events({ type: "message.delivered", wait_ms: PATIENCE_MS });
  assert.deepEqual(
    events.map((event) => event.message_id),
    [this.receipt.message_id],
  );
});

Then<RelayWorld>(
  "{word}'s stream has ended, because the relay does not know it any more",
  async function (name: string) {
    const reason = await this.delivery.listener(name).ended;
    assert.ok(reason instanceof RelayError, String(reason));
    assert.equal(reason.code, "unauthenticated");
  },
);

Then<RelayWorld>("{word} has heard nothing but {string}", function (name: string, body: string) {
  assert.deepEqual(
    this.delivery.listener(name).seen.map(({ item }) => item.message.body),
    [body],
  );
});

Given<RelayWorld>(
  "{word} and {word} each have a socket to the relay",
  async function (first: string, second: string) {
    for (const name of [first, second]) {
      const channel = await this.client.openSocket(name);
      const frames = new Follower(({ signal }) => {
        signal.addEventListener("abort", () => void channel.close(), { once: true });
        return channel.frames();
      });
      this.delivery.sockets.set(name, { channel, frames: this.use(frames) });
    }
  },
);

When<RelayWorld>(
  "{word} sends {string} to {word} over its socket",
  async function (from: string, body: string, to: string) {
    const { receipt } = await this.delivery.socket(from).channel.send({ from, to, body });
    this.receipts.push(receipt);
  },
);

Then<RelayWorld>("{word} gets {string} over its socket", async function (name: string, body: string) {
  const [frame] = await this.delivery.socket(name).frames.sees(1, PATIENCE_MS);
  assert.ok(frame?.type === "mail");
  assert.deepEqual(
    frame.messages.map(({ message }) => message.body),
    [body],
  );
});

When<RelayWorld>("{word} acknowledges it over its socket", async function (name: string) {
  const { channel } = this.delivery.socket(name);
  const { acknowledged } = await channel.ack({ message_ids: [this.receipt.message_id] });
  assert.equal(acknowledged, 1);
});

Given<RelayWorld>("{word} follows the task", async function (_name: string) {
  const { taskId } = this;
  const events = this.use(new Follower((options) => this.client.streamTask(taskId, {}, options)));
  await events.sees(1, PATIENCE_MS);
  this.delivery.taskEvents = events;
});

Then<RelayWorld>(/^(\S+) sees (.+) and then the end$/, async function (_name: string, types: string) {
  const { taskEvents } = this.delivery;
  assert.equal(await taskEvents?.ended, undefined);
  assert.deepEqual(
    taskEvents?.seen.map(({ event }) => event.type),
    types.split(", "),
  );
});

Given<RelayWorld>("a program that signs for {word}", async function (agent: string) {
  const { agent_id } = await this.client.agent(agent);
  const { key_id: keyId, key: secret } = await this.client.createKey({ agent_id, use: "sign" });
  this.delivery.signing = { keyId, secret };
});

When<RelayWorld>("the program posts {string} to {word}", async function (body: string, to: string) {
  const { signing } = this.delivery;
  assert.ok(signing, "no sender signs");
  this.delivery.posted = await signMessage({ to, body }, signing);
  await this.client.inbox(this.delivery.posted);
});

When<RelayWorld>("a sender posts the same once more", async function () {
  const { posted } = this.delivery;
  assert.ok(posted, "nothing was posted");
  await this.attempt(() => this.client.inbox(posted));
});

/** Follows the mailbox over a line that can be cut, and comes back soon when it was. */
async function listen(world: RelayWorld, name: string, apiKey: string | undefined): Promise<void> {
  world.delivery.line ??= world.use(await BreakableLine.open(() => world.client.url));
  const { url } = world.delivery.line;
  const client = new RelayClient({ url, apiKey, retryDelayMs: 10, retryDelayMsMax: 100 });
  const follower = new Follower((options) => client.streamMailbox(name, {}, options));
  world.delivery.listeners.set(name, world.use(follower));
}

/** What stands in quotation marks. */
export function textsIn(quoted: string): readonly string[] {
  return [...quoted.matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? "");
}
