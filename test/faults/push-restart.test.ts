import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { RelayClient } from "@a2a-relay/client";
import type { EventView, MessageResponse } from "@a2a-relay/protocol";
import { type ChildRelay, startChildRelay } from "../support/child-relay.ts";
import { eventually } from "../support/eventually.ts";
import { answers, PushReceiver, signaturesBy, with200 } from "../support/push-receiver.ts";
import { assertVerifies } from "./messages.ts";

const LULU = "lulu@kamac";
const ZHIWEI = "zhiwei@known-blocks1";
/** Far less than a claim lasts without renewal, and time enough for a slow start. */
const AT_ONCE_MS = 20_000;
/** The relay is killed between the second and the third. */
const ATTEMPTS = "0,20,3000,3020";

/** Data that outlives the relays that work on it. */
class Data implements AsyncDisposable {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  static async create(): Promise<Data> {
    return new Data(await mkdtemp(join(tmpdir(), "push-restart-")));
  }

  relay(attemptsMs = "0,20,40,60"): Promise<ChildRelay> {
    const env = {
      A2A_RELAY_EGRESS_ALLOW: "127.0.0.0/8",
      A2A_RELAY_PUSH_ATTEMPTS_MS: attemptsMs,
      A2A_RELAY_PUSH_TIMEOUT_MS: "20000",
    };
    return startChildRelay({ dataDirectory: join(this.#path, "data"), env });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#path, { recursive: true, force: true });
  }
}

/** Registers both and answers with the secret. */
async function register(client: RelayClient, url: string): Promise<string> {
  await client.register({ agent_id: LULU });
  const answer = await client.register({ agent_id: ZHIWEI, callback_url: url, push: "webhook" });
  return answer.push_secret ?? "";
}

async function send(client: RelayClient, body: string): Promise<string> {
  return (await client.send({ from: LULU, to: ZHIWEI, body })).receipt.message_id;
}

/** The message, once something of this kind has happened to it. */
async function until(client: RelayClient, type: string, messageId: string): Promise<MessageResponse> {
  for (let since = "0"; ;) {
    const page = await client.events({ type, since, wait_ms: 20_000 });
    assert.ok(page.events.length > 0, `${type} never came`);
    if (page.events.some((event: EventView) => event.message_id === messageId)) {
      return client.message(messageId);
    }
    since = page.cursor;
  }
}

describe("a push after kill -9", () => {
  it("in the middle of it is repeated with the same id, and no message is lost", async () => {
    await using data = await Data.create();
    await using receiver = await PushReceiver.open(() => undefined);
    const ids: string[] = [];
    let secret = "";
    {
      await using relay = await data.relay();
      const client = new RelayClient({ url: relay.url });
      secret = await register(client, receiver.url);
      for (const body of ["第一封", "第二封", "第三封"]) ids.push(await send(client, body));
      // It holds the request open, and never answers.
      await receiver.arrived(1);
      await relay.kill("SIGKILL");
    }
    const before = receiver.requests.length;
    receiver.answering = with200;
    await using relay = await data.relay();
    const client = new RelayClient({ url: relay.url });
    for (const id of ids) {
      const { push, delivery } = await until(client, "message.delivered", id);
      assert.deepEqual([push?.state, delivery?.state], ["delivered", "available"]);
      // The attempt that was cut off is not counted: its outcome is unknown.
      assert.equal(push?.attempts.length, 1);
    }
    const [cut] = receiver.requests;
    assert.equal(cut?.id, ids[0]);
    assert.equal(receiver.requests.slice(before).filter(({ id }) => id === cut?.id).length, 1);
    assert.ok(receiver.requests.every((request) => signaturesBy(secret, request) === 1));
    await assertVerifies(relay.url);
  });

  it("is not held up by the claim of the killed relay", async () => {
    await using data = await Data.create();
    await using receiver = await PushReceiver.open(() => undefined);
    let id = "";
    {
      await using relay = await data.relay();
      const client = new RelayClient({ url: relay.url });
      await register(client, receiver.url);
      id = await send(client, "你好");
      // The endpoint is claimed and the request is announced.
      await receiver.arrived(1);
      await relay.kill("SIGKILL");
    }
    receiver.answering = with200;
    const killedMs = performance.now();
    await using relay = await data.relay();
    await receiver.arrived(2);
    assert.ok(performance.now() - killedMs < AT_ONCE_MS);
    const { push } = await until(new RelayClient({ url: relay.url }), "message.delivered", id);
    assert.deepEqual([push?.state, push?.attempts.length], ["delivered", 1]);
    assert.deepEqual(
      receiver.requests.map((request) => request.id),
      [id, id],
    );
  });

  it("resumes with the remaining attempts, and reports when they are used up", async () => {
    await using data = await Data.create();
    await using receiver = await PushReceiver.open(answers(500));
    let id = "";
    {
      await using relay = await data.relay(ATTEMPTS);
      const client = new RelayClient({ url: relay.url });
      await register(client, receiver.url);
      id = await send(client, "你好");
      await receiver.arrived(2);
      await eventually(
        () => client.message(id),
        ({ push }) => push?.attempts.length === 2,
      );
      await relay.kill("SIGKILL");
    }
    assert.equal(receiver.requests.length, 2);
    await using relay = await data.relay(ATTEMPTS);
    const client = new RelayClient({ url: relay.url });
    const { push, receipts, delivery } = await until(client, "message.push_failed", id);
    const attempts = push?.attempts ?? [];
    assert.deepEqual(
      attempts.map(({ attempt, status }) => [attempt, status]),
      [1, 2, 3, 4].map((attempt) => [attempt, 500]),
    );
    // The third comes at its own time, not at once because the relay has just started.
    const [first, , third] = attempts.map(({ at }) => Date.parse(at));
    assert.ok((third ?? 0) - (first ?? 0) >= 2_900, `${third} is too early after ${first}`);
    assert.equal(receiver.requests.length, 4);
    assert.deepEqual([push?.state, delivery?.state], ["failed", "available"]);
    assert.equal(receipts.at(-1)?.stage, "push_failed");
  });

  it("leaves an open circuit open, a disabled endpoint disabled, and the secrets as they were", async () => {
    await using data = await Data.create();
    await using receiver = await PushReceiver.open(answers(503));
    let secrets: readonly string[] = [];
    let openUntil: string | undefined;
    {
      await using relay = await data.relay("0");
      const client = new RelayClient({ url: relay.url });
      const first = await register(client, receiver.url);
      secrets = [first, (await client.rotatePushSecret(ZHIWEI, {})).push_secret];
      for (let index = 0; index < 6; index += 1) await send(client, `第 ${index} 封`);
      const view = await eventually(
        () => client.push(ZHIWEI),
        ({ circuit }) => circuit === "open",
      );
      openUntil = view.open_until;
      await relay.kill("SIGKILL");
    }
    {
      await using relay = await data.relay("0");
      const client = new RelayClient({ url: relay.url });
      const view = await client.push(ZHIWEI);
      assert.deepEqual([view.circuit, view.open_until, view.failures], ["open", openUntil, 5]);
      receiver.answering = answers(410);
      // Registering again closes the circuit, so that the sixth message is tried at last.
      await client.register({ agent_id: ZHIWEI, push: "webhook" });
      const [, , , , , sixth] = await receiver.arrived(6);
      assert.ok(sixth);
      assert.deepEqual(
        secrets.map((secret) => signaturesBy(secret, sixth)),
        [1, 1],
      );
      await until(client, "message.push_failed", sixth.id);
      await relay.kill("SIGKILL");
    }
    await using relay = await data.relay("0");
    const client = new RelayClient({ url: relay.url });
    const view = await client.push(ZHIWEI);
    assert.deepEqual([view.state, view.pending], ["disabled", 0]);
    await send(client, "没人来取");
    assert.equal((await client.readMailbox(ZHIWEI, { peek: true })).messages.length, 7);
    assert.equal(receiver.requests.length, 6);
    await assertVerifies(relay.url);
  });
});
