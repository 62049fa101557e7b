import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { A2aEvents } from "../support/a2a-events.ts";
import { A2aRelay } from "../support/a2a-relay.ts";
import { assertGoldenWire, WireNames } from "../support/golden-wire.ts";
import { MailboxAgent } from "../support/mailbox-agent.ts";
import { AGENT, SPOKEN_DIALECTS, type SpokenDialect, type SpokenRequest } from "./spoken-dialect.ts";

/** What is said in one dialect, and what the relay answers, each pair under a name that is a file. */
class Conversation {
  readonly #relay: A2aRelay;
  readonly #dialect: SpokenDialect;
  readonly #names = new WireNames();

  constructor(relay: A2aRelay, dialect: SpokenDialect) {
    this.#relay = relay;
    this.#dialect = dialect;
  }

  async ask(name: string, request: SpokenRequest): Promise<unknown> {
    const { method, path, body, headers } = request;
    const { status, headers: said, text, json } = await this.#relay.call(method, path, body, headers);
    const answer = { status, "content-type": said.get("content-type"), body: json ?? text };
    this.pin(name, request, { answer });
    return json;
  }

  pin(name: string, request: SpokenRequest, answered: object): void {
    assertGoldenWire(`a2a/${this.#dialect.name}/${name}`, this.#names.of({ request, ...answered }));
  }
}

async function answerInSteps(relay: A2aRelay): Promise<void> {
  const work = await MailboxAgent.next(relay, AGENT);
  await work.working({
    parts: [{ text: "在看" }],
    a2a_message: { messageId: "said-1", metadata: { 步: 1 } },
  });
  await work.artifact({ artifactId: "a-1", name: "甲", parts: [{ text: "一" }] }, { metadata: { 块: 1 } });
  await work.artifact(
    { artifactId: "a-2", parts: [{ raw: "eA==", mediaType: "text/plain" }] },
    { last_chunk: false },
  );
  await work.artifact({ artifactId: "a-2", parts: [{ data: null }] }, { append: true, last_chunk: true });
  await work.complete({
    parts: [{ text: "好" }, { url: "https://files.example/甲", filename: "甲" }],
    metadata: { 末: true },
  });
}

/** The id by which the caller knows its task. */
function taskIdIn(answer: unknown): string {
  const text = JSON.stringify(answer);
  const named = /"id":"(my-task-\d)"/.exec(text);
  const [, id] = named ?? /"task(?:Id)?":(?:\{[^{]*?"id":)?"([^"]+)"/.exec(text) ?? [];
  return id ?? assert.fail(`no task in ${text}`);
}

for (const dialect of SPOKEN_DIALECTS) {
  describe(`A2A ${dialect.name} on the wire`, { timeout: 20_000 }, () => {
    it("is answered in kind, as pinned", async () => {
      await using relay = await A2aRelay.open();
      await relay.register(AGENT);
      const talk = new Conversation(relay, dialect);
      const id = taskIdIn(await talk.ask("send", dialect.send()));
      const first = await MailboxAgent.next(relay, AGENT);
      await first.ask({ text: "哪一个？" });
      await talk.ask("get-asked", dialect.get(id));
      const answered = talk.ask("add", dialect.add(id, "第二个"));
      const second = await MailboxAgent.next(relay, AGENT);
      await second.complete({ text: "好了" });
      await answered;
      await talk.ask("get-last-message", dialect.get(id, 1));
      await talk.ask("error-not-cancelable", dialect.cancel(id));
      await talk.ask("error-too-late", dialect.subscribe(id));
      await talk.ask("error-no-task", dialect.get("no-such-task"));
      if (dialect.list !== undefined) await talk.ask("list", dialect.list("c-1"));
    });

    it("streams and cancels in kind, as pinned", async () => {
      await using relay = await A2aRelay.open();
      await relay.register(AGENT);
      const talk = new Conversation(relay, dialect);
      await using stream = await A2aEvents.open(relay.url, dialect.stream());
      const [begun] = await stream.take(1);
      const working = answerInSteps(relay);
      const events = [begun, ...(await stream.rest())];
      await working;
      talk.pin("stream", dialect.stream(), { events });
      await talk.ask("get-done", dialect.get(taskIdIn(begun?.data)));
      const id = taskIdIn(await relay.call(...partsOf(dialect.send())).then(({ json }) => json));
      await talk.ask("cancel", dialect.cancel(id));
    });
  });
}

function partsOf({ method, path, body, headers }: SpokenRequest): Parameters<A2aRelay["call"]> {
  return headers === undefined ? [method, path, body] : [method, path, body, headers];
}
