import assert from "node:assert/strict";
import type { A2aTask } from "@a2a-relay/protocol";
import { type DataTable, Given, Then, When } from "@cucumber/cucumber";
import { A2aEvents, type A2aStreamRequest } from "../../support/a2a-events.ts";
import { BreakableLine } from "../../support/breakable-line.ts";
import { Follower } from "../../support/follower.ts";
import { PushReceiver } from "../../support/push-receiver.ts";
import { type A2aOutcome, OfficialCaller, type SeenEvent, textOf, userMessage } from "./a2a-scene.ts";
import { PATIENCE_MS, type RelayWorld } from "./relay-world.ts";

Given<RelayWorld>(
  "a caller with the official A2A client, who knows where {word} is",
  async function (agent: string) {
    this.a2a.caller = await OfficialCaller.at(`${this.client.url}/agents/${agent}`);
  },
);

Given<RelayWorld>("a caller with the official A2A client, who knows where the relay is", async function () {
  this.a2a.caller = await OfficialCaller.at(this.client.url);
});

When<RelayWorld>("the caller asks {string} and waits", function (text: string) {
  this.a2a.begin(this.a2a.caller.send({ message: userMessage(text) }));
});

When<RelayWorld>("the caller asks {string} and does not wait", async function (text: string) {
  await askAndGo(this, text);
});

When<RelayWorld>("the caller adds {string} and waits", function (text: string) {
  const { caller, taskId } = this.a2a;
  this.a2a.begin(caller.send({ message: userMessage(text, { taskId }) }));
});

When<RelayWorld>("the caller asks {string} and watches", async function (text: string) {
  const { caller } = this.a2a;
  const params = { message: userMessage(text) };
  this.a2a.watching = this.use(new Follower(({ signal }) => caller.stream(params, signal)));
  await this.a2a.watching.sees(1, PATIENCE_MS);
});

When<RelayWorld>(
  "the caller asks {string} and wants to be called, with the token {string}",
  async function (text: string, token: string) {
    this.delivery.receiver = this.use(await PushReceiver.open());
    const taskPushNotificationConfig = { url: this.delivery.receiver.url, token };
    await askAndGo(this, text, { taskPushNotificationConfig });
  },
);

When<RelayWorld>("the caller cancels its task", async function () {
  await this.a2a.caller.cancel(this.a2a.taskId);
});

When<RelayWorld>("the caller asks for the task {string}", async function (id: string) {
  await attempt(this, this.a2a.caller.get(id));
});

When<RelayWorld>("the caller asks the relay {string}", async function (text: string) {
  this.a2a.begin(this.a2a.caller.send({ message: userMessage(text) }));
  await this.a2a.answer();
});

When<RelayWorld>(
  "the caller asks the relay to pass {string} on to {word}",
  function (text: string, agent: string) {
    const metadata = { relay_target_agent_id: agent };
    this.a2a.begin(this.a2a.caller.send({ message: userMessage(text, { metadata }) }));
  },
);

Then<RelayWorld>("the relay names {word}, and where it is reached", async function (id: string) {
  const found = agentsIn(await this.a2a.answer());
  assert.deepEqual(
    found.map(({ agent_id, url }) => [agent_id, url]),
    [[id, `${this.client.url}/agents/${id}/a2a`]],
  );
});

When<RelayWorld>("the caller goes there and asks {string}, and does not wait", async function (text: string) {
  const [found] = agentsIn(await this.a2a.answer());
  this.a2a.caller = await OfficialCaller.at((found?.url ?? "").replace(/\/a2a$/, ""));
  await askAndGo(this, text);
});

Then<RelayWorld>("the caller's task is {word}", async function (state: string) {
  assertTask(await this.a2a.caller.get(this.a2a.taskId), state);
});

Then<RelayWorld>("the caller's task is {word}, with {string}", async function (state: string, text: string) {
  assertTask(await this.a2a.caller.get(this.a2a.taskId), state, text);
});

Then<RelayWorld>(
  "the caller is told that its task is {word}, with {string}",
  async function (state: string, text: string) {
    const { task } = await this.a2a.answer();
    assert.ok(task, "the caller was told of no task");
    assertTask(task, state, text);
  },
);

Then<RelayWorld>("the caller gets the message {string}, and no task", async function (text: string) {
  const { message, task } = await this.a2a.answer();
  assert.equal(task, undefined);
  assert.equal(message && textOf(message), text);
});

Then<RelayWorld>("the caller is told that there is no such task", function () {
  assert.equal(this.a2a.refusal, "TaskNotFoundError");
});

Then<RelayWorld>(
  "the caller's server is told that the task is {word}, with {string} and the token {string}",
  async function (state: string, text: string, token: string) {
    const [pushed] = await this.delivery.receiver.arrived(1);
    assert.ok(pushed);
    assert.equal(pushed.headers["x-a2a-notification-token"], token);
    assert.equal(pushed.headers["content-type"], "application/a2a+json");
    assert.deepEqual(shown({ event: JSON.parse(pushed.body) as SeenEvent["event"] }), [
      "status",
      `${state}: ${text}`,
    ]);
  },
);

When<RelayWorld>(
  "a program asks {word} for {string} with plain HTTP, and watches",
  async function (agent: string, text: string) {
    this.delivery.line = this.use(await BreakableLine.open(() => this.client.url));
    const path = `/agents/${agent}/a2a/message:stream`;
    await watch(this, { method: "POST", path, body: { message: userMessage(text) } });
    const [first] = await this.a2a.watching.sees(1, PATIENCE_MS);
    this.a2a.taskId = first?.event.task?.id ?? "";
  },
);

When<RelayWorld>("the program's connection breaks", async function () {
  this.delivery.line?.cut();
  await this.a2a.watching.ended;
});

When<RelayWorld>("the program comes back, and says which event it saw last", async function () {
  const id = this.a2a.watching.seen.at(-1)?.id ?? assert.fail("it saw nothing");
  const path = `/agents/zhiwei/a2a/tasks/${this.a2a.taskId}:subscribe`;
  await watch(this, { method: "GET", path, headers: { "last-event-id": id } });
});

Then<RelayWorld>("the program sees these", async function (table: DataTable) {
  await assertSeen(this, table);
});

Then<RelayWorld>(/^the (?:caller|program) sees these, and then the end$/, async function (table: DataTable) {
  await assertSeen(this, table);
  assert.equal(await this.a2a.watching.ended, undefined);
  assert.equal(this.a2a.watching.seen.length, table.raw().length);
});

Given<RelayWorld>(
  "{word} asked {word} over A2A, with its own key: {string}",
  async function (name: string, agent: string, text: string) {
    await callWithKey(this, name, agent);
    await askAndGo(this, text);
  },
);

When<RelayWorld>("{word} asks {word} over A2A for lulu's task", async function (name: string, agent: string) {
  await callWithKey(this, name, agent);
  await attempt(this, this.a2a.caller.get(this.a2a.taskId));
});

Then<RelayWorld>("{word} finds no own task at {word}", async function (name: string, agent: string) {
  await callWithKey(this, name, agent);
  assert.deepEqual(await this.a2a.caller.taskIds(), []);
});

Then<RelayWorld>("{word} finds its own task at {word}", async function (name: string, agent: string) {
  await callWithKey(this, name, agent);
  assert.deepEqual(await this.a2a.caller.taskIds(), [this.a2a.taskId]);
});

interface FoundAgent {
  readonly agent_id: string;
  readonly url: string;
}

/** Whom the relay named in its answer. */
function agentsIn({ message }: A2aOutcome): readonly FoundAgent[] {
  const data = message?.parts.find((part) => part["data"] !== undefined)?.["data"];
  assert.ok(data, "the relay did not answer with a message");
  return (data as { readonly agents: readonly FoundAgent[] }).agents;
}

async function callWithKey(world: RelayWorld, name: string, agent: string): Promise<void> {
  const key = world.keys.get(name);
  assert.ok(key, `${name} has no key`);
  world.a2a.caller = await OfficialCaller.at(`${world.client.url}/agents/${agent}`, key);
}

async function askAndGo(world: RelayWorld, text: string, more: object = {}): Promise<void> {
  const configuration = { returnImmediately: true, ...more };
  world.a2a.begin(world.a2a.caller.send({ message: userMessage(text), configuration }));
  await world.a2a.answer();
}

/** For calls that are expected to be refused. */
async function attempt(world: RelayWorld, call: Promise<unknown>): Promise<void> {
  world.a2a.refusal = await call.then(
    () => undefined,
    (reason: unknown) => (reason instanceof Error ? reason.name : String(reason)),
  );
}

/** Follows a stream as it comes over a line that can be cut. */
async function watch(world: RelayWorld, request: A2aStreamRequest): Promise<void> {
  const { line } = world.delivery;
  assert.ok(line, "there is no line");
  const events = world.use(await A2aEvents.open(line.url, request));
  async function* read(): AsyncGenerator<SeenEvent> {
    for (let each = await events.next(); each !== undefined; each = await events.next()) {
      yield { id: each.id, event: each.data as SeenEvent["event"] };
    }
  }
  world.a2a.watching = new Follower(read);
}

async function assertSeen({ a2a }: RelayWorld, table: DataTable): Promise<void> {
  const seen = await a2a.watching.sees(table.raw().length, PATIENCE_MS);
  assert.deepEqual(seen.map(shown), table.raw());
}

function assertTask({ status }: A2aTask, state: string, text?: string): void {
  assert.equal(plain(status.state), state);
  if (text !== undefined) assert.equal(status.message && textOf(status.message), text);
}

/** TASK_STATE_INPUT_REQUIRED is input-required to people. */
function plain(state: string): string {
  return state.replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-");
}

/** What an event says, for people. */
function shown({ event }: SeenEvent): readonly string[] {
  const { task, statusUpdate, artifactUpdate } = event;
  if (task !== undefined) return ["task", plain(task.status.state)];
  if (statusUpdate !== undefined) {
    const { state, message } = statusUpdate.status;
    return ["status", message === undefined ? plain(state) : `${plain(state)}: ${textOf(message)}`];
  }
  const { artifact, append = false, lastChunk = false } = artifactUpdate ?? assert.fail("an empty event");
  const piece = `${append ? "+ " : ""}${textOf(artifact)}${lastChunk ? ", the end" : ""}`;
  return ["artifact", `${String(artifact["name"])}: ${piece}`];
}
