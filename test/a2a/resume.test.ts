import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { STREAM_RESUME_EXTENSION } from "@a2a-relay/protocol";
import { A2aEvents, type A2aStreamRequest, type A2aWireEvent } from "../support/a2a-events.ts";
import { A2aRelay } from "../support/a2a-relay.ts";
import { eventually } from "../support/eventually.ts";
import { MailboxAgent } from "../support/mailbox-agent.ts";
import { collect, type EventJson, SDK_CLIENTS, SdkClient, userMessage } from "../support/sdk-client.ts";

const AGENT = "zhiwei";
const PATH = `/agents/${AGENT}/a2a`;

/** The ways to subscribe over HTTP; gRPC has another one. */
const SUBSCRIPTIONS: readonly (readonly [name: string, request: (id: string) => A2aStreamRequest])[] = [
  ["JSON-RPC 1.0", (id) => ({ method: "POST", path: PATH, body: rpc("SubscribeToTask", { id }) })],
  ["REST 1.0", (id) => ({ method: "GET", path: `${PATH}/tasks/${id}:subscribe` })],
  ["JSON-RPC 0.3", (id) => ({ method: "POST", path: PATH, body: rpc("tasks/resubscribe", { id }) })],
  ["REST 0.3", (id) => ({ method: "GET", path: `${PATH}/v1/tasks/${id}:subscribe` })],
];

function rpc(method: string, params: object): object {
  return { jsonrpc: "2.0", id: 1, method, params };
}

async function ask(relay: A2aRelay): Promise<string> {
  const body = { ...userMessage("一步一步来"), configuration: { returnImmediately: true } };
  const { task } = (await relay.ok("POST", `${PATH}/message:send`, body)) as {
    readonly task: { readonly id: string };
  };
  return task.id;
}

/** Thirteen steps: a question in the middle, whose answer is a step that followers do not see. */
async function workThrough(relay: A2aRelay, id: string): Promise<void> {
  const first = await MailboxAgent.next(relay, AGENT);
  await first.working({ text: "开始" });
  const chunk = (n: number): object => ({ artifactId: "a", parts: [{ text: `第${n}段` }] });
  await first.artifact(chunk(1), { last_chunk: false });
  for (const n of [2, 3, 4]) await first.artifact(chunk(n), { append: true, last_chunk: false });
  await first.ask({ text: "还要吗？" });
  const answer = { ...userMessage("要", { taskId: id }), configuration: { returnImmediately: true } };
  await relay.ok("POST", `${PATH}/message:send`, answer);
  const second = await MailboxAgent.next(relay, AGENT);
  await second.working({ text: "接着" });
  for (const n of [5, 6]) await second.artifact(chunk(n), { append: true, last_chunk: n === 6 });
  await second.complete({ text: "好了", artifacts: [{ artifactId: "b", parts: [{ data: null }] }] });
}

const LOG_IDS = ["1", "2", "3", "4", "5", "6", "8", "9", "10", "11", "12", "13"];

/** An event of 0.3 over JSON-RPC. */
interface WireTask {
  readonly data: { readonly result: { readonly id: string; readonly final: boolean } };
}

const idsOf = (events: readonly A2aWireEvent[]): readonly (string | undefined)[] =>
  events.map(({ id }) => id);

/** What comes behind this event; nothing where the relay has no more to say. */
async function resume(
  relay: A2aRelay,
  request: A2aStreamRequest,
  lastEventId: string,
): Promise<readonly A2aWireEvent[]> {
  const headers = { ...request.headers, "last-event-id": lastEventId };
  if (lastEventId === LOG_IDS.at(-1)) {
    const { status } = await relay.call(request.method, request.path, request.body, headers);
    assert.equal(status, 204);
    return [];
  }
  await using stream = await A2aEvents.open(relay.url, { ...request, headers });
  return await stream.rest();
}

/** Reads with a new connection for each event, each beginning where the one before was cut. */
async function readInPieces(relay: A2aRelay, request: A2aStreamRequest): Promise<readonly A2aWireEvent[]> {
  const all: A2aWireEvent[] = [];
  for (let last = "0"; last !== LOG_IDS.at(-1);) {
    const headers = { ...request.headers, "last-event-id": last };
    await using stream = await A2aEvents.open(relay.url, { ...request, headers });
    const [event] = await stream.take(1);
    all.push(event ?? assert.fail());
    last = event?.id ?? "";
  }
  return all;
}

describe("a stream that is cut", { timeout: 30_000 }, () => {
  let relay: A2aRelay;
  let id: string;
  const logs = new Map<string, readonly A2aWireEvent[]>();
  before(async () => {
    relay = await A2aRelay.open();
    await relay.register(AGENT);
    id = await ask(relay);
    // They read while the agent works, each cut behind every event.
    const readers = SUBSCRIPTIONS.map(async ([name, request]) => {
      logs.set(name, await readInPieces(relay, request(id)));
    });
    await workThrough(relay, id);
    await Promise.all(readers);
  });
  after(() => relay[Symbol.asyncDispose]());

  for (const [name, request] of SUBSCRIPTIONS) {
    it(`behind every event has lost and repeated nothing in the end, over ${name}`, () => {
      assert.deepEqual(idsOf(logs.get(name) ?? []), LOG_IDS);
    });

    it(`goes on at every index, over ${name}`, async () => {
      const log = logs.get(name) ?? [];
      for (let index = 0; index <= 13; index += 1) {
        const rest = await resume(relay, request(id), String(index));
        assert.deepEqual(
          rest,
          log.filter((event) => Number(event.id) > index),
          `behind ${index}`,
        );
      }
    });
  }

  it("shows the same to all, in the same order", () => {
    const [overRpc, overRest] = ["JSON-RPC 1.0", "REST 1.0"].map((name) => logs.get(name) ?? []);
    const bare = overRpc?.map(({ id: n, data }) => ({
      id: n,
      data: (data as { readonly result: unknown }).result,
    }));
    assert.deepEqual(bare, overRest);
  });

  it("goes on at every index over gRPC, whose ids are in the metadata", async () => {
    const headers = { "a2a-extensions": STREAM_RESUME_EXTENSION };
    const client = await SdkClient.open(relay, AGENT, grpcKind(), headers);
    for (let index = 0; index <= 13; index += 1) {
      const events = await collect(client.subscribe(id, { headers: { "last-event-id": String(index) } }));
      assert.deepEqual(events.map(numberIn), LOG_IDS.filter((n) => Number(n) > index).map(Number));
    }
  });

  it("is refused a cursor that is none", async () => {
    for (const [, request] of SUBSCRIPTIONS) {
      const { method, path, body } = request(id);
      const { text } = await relay.call(method, path, body, { "last-event-id": "behind-the-moon" });
      assert.match(text, /Last-Event-ID: \\?"behind-the-moon/);
    }
    for (const [, request] of SUBSCRIPTIONS) {
      const { method, path, body } = request(id);
      assert.match(
        (await relay.call(method, path, body, { "last-event-id": "14" })).text,
        /has no event 14 yet/,
      );
    }
    const client = await SdkClient.open(relay, AGENT, grpcKind());
    const asked = collect(client.subscribe(id, { headers: { "last-event-id": "-1" } }));
    await assert.rejects(asked, /Last-Event-ID/);
  });

  it("goes on at every index after the relay was started again", async () => {
    await relay.restart();
    for (const [name, request] of SUBSCRIPTIONS) {
      const log = logs.get(name) ?? [];
      for (let index = 0; index <= 13; index += 1) {
        const rest = await resume(relay, request(id), String(index));
        assert.deepEqual(
          rest,
          log.filter((event) => Number(event.id) > index),
          `${name} behind ${index}`,
        );
      }
    }
  });
});

describe("a stream that goes on", { timeout: 20_000 }, () => {
  it("begins with the task, whose id says where it stands", async () => {
    await using relay = await A2aRelay.open();
    await relay.register(AGENT);
    const id = await ask(relay);
    const work = await MailboxAgent.next(relay, AGENT);
    await work.working({ text: "一" });
    await work.working({ text: "二" });
    for (const [, request] of SUBSCRIPTIONS) {
      await using stream = await A2aEvents.open(relay.url, request(id));
      const [first] = await stream.take(1);
      assert.equal(first?.id, "2");
    }
  });

  it("sends heartbeats that are no events", async () => {
    await using relay = await A2aRelay.open({ env: { A2A_RELAY_HEARTBEAT_MS: "20" } });
    await relay.register(AGENT);
    const id = await ask(relay);
    const work = await MailboxAgent.next(relay, AGENT);
    for (const [, request] of SUBSCRIPTIONS) {
      await using stream = await A2aEvents.open(relay.url, request(id));
      await stream.take(1);
      const next = stream.next();
      await eventually(
        () => relay.call("GET", "/health").then(() => stream.comments.length),
        (seen) => seen >= 3,
      );
      await work.working({ text: "还在" });
      assert.ok((await next)?.id);
    }
  });

  it("to a task that asks stays open for subscribers and ends for the sender", async () => {
    await using relay = await A2aRelay.open();
    await relay.register(AGENT);
    const body = rpc("message/stream", {
      message: { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: "问" }] },
    });
    await using sent = await A2aEvents.open(relay.url, { method: "POST", path: PATH, body });
    const [begun] = await sent.take(1);
    const { id } = (begun as WireTask).data.result;
    await using watched = await A2aEvents.open(relay.url, {
      method: "POST",
      path: PATH,
      body: rpc("tasks/resubscribe", { id }),
    });
    await watched.take(1);
    const work = await MailboxAgent.next(relay, AGENT);
    await work.ask({ text: "哪个？" });
    const isFinal = (event: A2aWireEvent): unknown => (event as WireTask).data.result.final;
    assert.deepEqual((await sent.rest()).map(isFinal), [true]);
    assert.deepEqual((await watched.take(1)).map(isFinal), [false]);
    const answer = { ...userMessage("这个", { taskId: id }), configuration: { returnImmediately: true } };
    await relay.ok("POST", `${PATH}/message:send`, answer);
    await (await MailboxAgent.next(relay, AGENT)).complete({ text: "好" });
    assert.deepEqual((await watched.rest()).map(isFinal), [false, true]);
  });

  it("is not disturbed when another one is closed", async () => {
    await using relay = await A2aRelay.open();
    await relay.register(AGENT);
    const id = await ask(relay);
    const [, request] = SUBSCRIPTIONS[0] ?? assert.fail();
    await using stays = await A2aEvents.open(relay.url, request(id));
    {
      await using leaves = await A2aEvents.open(relay.url, request(id));
      await leaves.take(1);
    }
    await (await MailboxAgent.next(relay, AGENT)).complete({ text: "好" });
    assert.deepEqual(idsOf(await stays.rest()), ["0", "1"]);
  });
});

function grpcKind(): (typeof SDK_CLIENTS)[number] {
  return SDK_CLIENTS.find(({ binding }) => binding === "GRPC") ?? assert.fail();
}

function numberIn(event: EventJson): unknown {
  const [said] = Object.values(event) as readonly { readonly metadata?: Readonly<Record<string, unknown>> }[];
  return said?.metadata?.[STREAM_RESUME_EXTENSION];
}
