import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type AgentTask, RelayAgent, type TaskReply } from "@a2a-relay/client";
import { startCli } from "../../../../testing/cli-following.ts";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";
import { cliRun } from "../../../../testing/cli-run.ts";

const BOUND = { timeout: 20_000 };

/** Nothing listens there: port 1 needs rights that no relay has. */
const NO_RELAY = "http://127.0.0.1:1";

async function answering(
  relay: CliRelay,
  handle: (task: AgentTask) => Promise<TaskReply> | TaskReply,
): Promise<AsyncDisposable> {
  const agent = new RelayAgent({ url: relay.url, id: ZHIWEI, onError: () => undefined });
  agent.onTask(handle);
  await agent.start();
  return { [Symbol.asyncDispose]: () => agent.stop() };
}

/** Works on a task until it is let go. */
class Gate {
  readonly #opened = Promise.withResolvers<void>();

  open(): void {
    this.#opened.resolve();
  }

  passed({ signal }: AgentTask): Promise<unknown> {
    const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    return Promise.race([this.#opened.promise, stopped]);
  }
}

describe("a2a card of an agent of the relay", BOUND, () => {
  it("tells where it is called, what it can do, and what it asks for", async () => {
    await using relay = await openCliRelay();
    await relay.client.register({
      agent_id: ZHIWEI,
      aliases: ["zhiwei"],
      card: {
        name: "知微",
        description: "翻译合同\u001b[2J",
        version: "2.1.0",
        skills: [{ id: "translate", name: "翻译", description: "中英互译", tags: ["合同", "英文"] }],
        capabilities: { extensions: [{ uri: "https://zhiwei.example/glossary", required: true }] },
      },
    });
    const card = await relay.ok(["a2a", "card", "zhiwei"]);
    assert.match(card, /^知微 {2}2\.1\.0\n/);
    assert.match(card, /^ {2}description +翻译合同␛\[2J$/m);
    assert.match(card, /^interfaces\n {2}JSONRPC 1\.0 +http:\S+\/agents\/\S+\/a2a$/m);
    assert.match(card, /^skills\n {2}translate {2}翻译: 中英互译 {2}\[合同, 英文\]$/m);
    assert.match(card, /^ {2}https:\/\/zhiwei\.example\/glossary +\(required\)$/m);
    const json = await relay.json(["a2a", "card", ZHIWEI]);
    assert.equal(json["description"], "翻译合同\u001b[2J");
    assert.ok(Array.isArray(json["supportedInterfaces"]));
  });

  it("of the relay itself is that of `relay`", async () => {
    await using relay = await openCliRelay();
    assert.match(await relay.ok(["a2a", "card", "relay"]), /^interfaces\n {2}JSONRPC 1\.0 +http:\S+\/a2a$/m);
    assert.match(await relay.ok(["a2a", "send", "relay", "help"]), /This is a relay/);
  });
});

describe("a2a send to an agent of the relay", BOUND, () => {
  it("waits for the answer and prints the task, in every dialect", async () => {
    await using relay = await openCliRelay();
    await using _agent = await answering(relay, ({ text }) => `收到：${text}`);
    for (const dialect of ["1.0", "0.3", "0.2", "0.1"]) {
      const stdout = await relay.ok(["a2a", "send", "zhiwei", "你好，知微", "--dialect", dialect]);
      assert.match(stdout, /^\S+ {2}completed\n {2}context {2}\S+\n/, dialect);
      assert.match(stdout, /^agent\n {2}收到：你好，知微$/m, dialect);
      const [id = ""] = stdout.split(" ");
      const got = await relay.ok(["a2a", "get", "zhiwei", id, "--dialect", dialect, "--history", "5"]);
      assert.match(got, /^user\n {2}你好，知微$/m, dialect);
    }
  });

  it("prints A2A 1.0 with --json, whatever was spoken", async () => {
    await using relay = await openCliRelay();
    await using _agent = await answering(relay, ({ text }) => `收到：${text}`);
    const { task } = await relay.json(["a2a", "send", ZHIWEI, "-", "--dialect", "0.2"], {
      stdin: "从管道来\n",
    });
    const { status, history } = task as {
      readonly status: { readonly state: string; readonly message: { readonly parts: readonly object[] } };
      readonly history: readonly { readonly parts: readonly object[] }[];
    };
    assert.equal(status.state, "TASK_STATE_COMPLETED");
    assert.deepEqual(status.message.parts, [{ text: "收到：从管道来" }]);
    assert.deepEqual(history[0]?.parts, [{ text: "从管道来" }]);
  });

  it("waits on when the relay answers before the task is settled", async () => {
    await using relay = await openCliRelay({ "a2a-block-ms": "0" });
    await using _agent = await answering(relay, ({ text }) => `收到：${text}`);
    assert.match(await relay.ok(["a2a", "send", "zhiwei", "慢慢来"]), / completed\n[^]* {2}收到：慢慢来\n/);
  });

  it("says how to answer what the agent asks, and the answer goes on with the task", async () => {
    await using relay = await openCliRelay();
    await using _agent = await answering(relay, (task) => {
      if (task.isFollowUp) return `译成${task.text}`;
      return task.askInput("译成哪种语言？");
    });
    for (const more of [[], ["--stream"]]) {
      const { code, stdout, stderr } = await relay.run(["a2a", "send", "zhiwei", "翻译", ...more]);
      assert.equal(code, 0);
      assert.match(stdout, /译成哪种语言？/);
      const [, advice = ""] = /^the agent asks; answer with: a2a-relay (.+)\n$/.exec(stderr) ?? [];
      assert.match(advice, /^a2a send zhiwei TEXT --task [0-9a-f-]{36}$/);
      const answered = await relay.ok(advice.replace("TEXT", "英文").split(" ").concat(more));
      assert.match(answered, /译成英文/);
      assert.match(answered, /completed/);
    }
  });

  it("ends with code 1 and the reason when the task fails or is rejected", async () => {
    await using relay = await openCliRelay();
    await using _agent = await answering(relay, (task) => {
      if (task.text === "拒绝") return task.reject("没有合同");
      throw new Error("词典\u001b坏了");
    });
    const failed = await relay.run(["a2a", "send", "zhiwei", "翻译"]);
    assert.equal(failed.code, 1);
    assert.match(failed.stdout, /^\S+ {2}failed\n/);
    assert.match(failed.stderr, /^error: task \S+ failed: 词典␛坏了\n$/);
    const rejected = await relay.run(["a2a", "send", "zhiwei", "拒绝", "--stream"]);
    assert.equal(rejected.code, 1);
    assert.match(rejected.stderr, /^error: task \S+ was rejected: 没有合同\n$/);
  });

  it("prints events as they come, which can be taken up behind any of them", async () => {
    await using relay = await openCliRelay();
    const gate = new Gate();
    await using _agent = await answering(relay, async (task) => {
      await task.working("正在翻译");
      await task.addArtifact({ artifactId: "yw", name: "译文", parts: [{ text: "第一\n" }] });
      await gate.passed(task);
      await task.addArtifact({ artifactId: "yw", parts: [{ text: "第二" }] }, { append: true });
      return undefined;
    });
    const run = startCli(["a2a", "send", "zhiwei", "翻译", "--stream"], {
      env: { A2A_RELAY_URL: relay.url },
    });
    const [, taskId = ""] = await run.prints(/^0 {2}task {2}(\S+) {2}submitted$/m);
    const [, eventId = ""] = await run.prints(/^(\d+) {2}artifact {2}译文 {2}第一$/m);
    gate.open();
    const { code, stdout, stderr } = await run.ended;
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^1 {2}status {2}working {2}正在翻译$/m);
    assert.match(stdout, /^\d+ {2}artifact {2}\S+ \+ {2}第二\n\d+ {2}status {2}completed/m);
    const rest = await relay.ok(["a2a", "subscribe", "zhiwei", taskId, "--last-event-id", eventId]);
    assert.equal(rest, stdout.slice(stdout.indexOf("第一\n") + 3));
    const whole = await relay.ok(["a2a", "get", "zhiwei", taskId]);
    assert.match(whole, /^artifact 译文\n {2}第一\n {2}第二$/m);
  });

  it("prints the task as it begins with --no-wait, and asks once for one idempotency key", async () => {
    await using relay = await openCliRelay();
    const argv = [
      "a2a",
      "send",
      "zhiwei",
      "不急",
      "--no-wait",
      "--context",
      "讨论",
      "--idempotency-key",
      "k-1",
    ];
    const { code, stdout, stderr } = await relay.run(argv);
    assert.equal(code, 0);
    const [, id = ""] = /^(\S+) {2}submitted\n {2}context {2}讨论\n/.exec(stdout) ?? [];
    assert.equal(stderr, `the task goes on; follow it with: a2a-relay a2a subscribe zhiwei ${id}\n`);
    assert.equal((await relay.ok(argv)).split(" ")[0], id);
    assert.notEqual((await relay.ok(argv.slice(0, -2))).split(" ")[0], id);
  });

  it("asks as the agent whose key it has", async () => {
    await using relay = await openCliRelay();
    const { key } = await relay.json(["keys", "create", "--agent", LULU]);
    const as = { env: { A2A_RELAY_API_KEY: String(key) } };
    const { task } = await relay.json(["a2a", "send", "zhiwei", "你好", "--no-wait"], as);
    const { id } = task as { readonly id: string };
    assert.equal((await relay.client.task(id)).requester, LULU);
    const other = { env: { A2A_RELAY_API_KEY: "a-key-that-this-relay-never-made" } };
    const wrong = await relay.run(["a2a", "send", "zhiwei", "你好"], other);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /give a key that works with A2A_RELAY_API_KEY/);
  });

  it("sends the headers of a file along, such as extensions that the agent requires", async () => {
    await using relay = await openCliRelay();
    const uri = "https://zhiwei.example/glossary";
    const capabilities = { extensions: [{ uri, required: true }] };
    await relay.client.register({ agent_id: ZHIWEI, card: { name: "知微", capabilities } });
    const refused = await relay.run(["a2a", "send", ZHIWEI, "你好", "--no-wait"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /requires the extension https:\/\/zhiwei\.example\/glossary/);
    const directory = await mkdtemp(join(tmpdir(), "a2a-headers-"));
    try {
      const file = join(directory, "headers");
      await writeFile(file, `A2A-Extensions: ${uri}\n`);
      await relay.ok(["a2a", "send", ZHIWEI, "你好", "--no-wait", "--headers", file]);
      const missing = await relay.run(["a2a", "send", ZHIWEI, "你好", "--headers", join(directory, "no")]);
      assert.equal(missing.code, 2);
      assert.match(missing.stderr, /--headers: ENOENT/);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

describe("a2a cancel and subscribe at the relay", BOUND, () => {
  it("cancel stops the task, and its followers end with code 1", async () => {
    await using relay = await openCliRelay();
    await using _agent = await answering(relay, (task) => new Gate().passed(task).then(() => undefined));
    const { task } = await relay.json(["a2a", "send", "zhiwei", "很久", "--no-wait"]);
    const { id } = task as { readonly id: string };
    const following = startCli(["a2a", "subscribe", "zhiwei", id], { env: { A2A_RELAY_URL: relay.url } });
    await following.prints(/ task /);
    assert.match(await relay.ok(["a2a", "cancel", "zhiwei", id]), /^\S+ {2}canceled\n/);
    const { code, stdout, stderr } = await following.ended;
    assert.equal(code, 1);
    assert.match(stdout, / {2}status {2}canceled/);
    assert.match(stderr, new RegExp(`^error: task ${id} was canceled`));
    // Reading it is another matter.
    assert.match(await relay.ok(["a2a", "get", "zhiwei", id]), /^\S+ {2}canceled\n/);
    const late = await relay.run(["a2a", "send", "zhiwei", "还在吗", "--task", id]);
    assert.equal(late.code, 1);
    assert.match(late.stderr, /^error: .*canceled/);
  });

  it("subscribe goes on while the agent waits for an answer, and says how to give it", async () => {
    await using relay = await openCliRelay();
    await using _agent = await answering(relay, (task) =>
      task.isFollowUp ? `译成${task.text}` : task.askInput("哪种语言？"),
    );
    const { task } = await relay.json(["a2a", "send", "zhiwei", "翻译", "--no-wait"]);
    const { id } = task as { readonly id: string };
    const following = startCli(["a2a", "subscribe", "zhiwei", id, "--json"], {
      env: { A2A_RELAY_URL: relay.url },
    });
    await following.notes(new RegExp(`answer with: a2a-relay a2a send zhiwei TEXT --task ${id}\n`));
    await relay.ok(["a2a", "send", "zhiwei", "法文", "--task", id]);
    const { code, stdout } = await following.ended;
    assert.equal(code, 0);
    const last = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "") as {
      readonly statusUpdate: { readonly status: { readonly state: string } };
    };
    assert.equal(last.statusUpdate.status.state, "TASK_STATE_COMPLETED");
    assert.ok(JSON.stringify(last).includes("译成法文"));
  });

  it("Ctrl-C ends a command that waits, without a word, and the task goes on", async () => {
    await using relay = await openCliRelay();
    const env = { A2A_RELAY_URL: relay.url };
    const { task } = await relay.json(["a2a", "send", "zhiwei", "很久", "--no-wait"]);
    const { id } = task as { readonly id: string };
    const following = startCli(["a2a", "subscribe", "zhiwei", id], { env });
    await following.prints(/ task /);
    const { code, stderr } = await following.interrupt();
    assert.deepEqual([code, stderr], [130, ""]);
    const streaming = startCli(["a2a", "send", "zhiwei", "也很久", "--stream"], { env });
    await streaming.prints(/ task /);
    assert.equal((await streaming.interrupt()).code, 130);
    assert.equal((await relay.client.lease(ZHIWEI, { max: 10 })).messages.length, 2);
    const waiting = startCli(["a2a", "send", "zhiwei", "还要很久"], { env });
    assert.equal((await relay.client.lease(ZHIWEI, { wait_ms: 10_000 })).messages.length, 1);
    assert.equal((await waiting.interrupt()).code, 130);
    assert.match(await relay.ok(["a2a", "get", "zhiwei", id]), /^\S+ {2}submitted\n/);
  });
});

describe("a2a with what is not there", BOUND, () => {
  it("names an unknown agent in every dialect, and the command that lists agents", async () => {
    await using relay = await openCliRelay();
    for (const argv of [["card"], ["send", "x"], ["send", "x", "--dialect", "0.3"], ["get", "t"]]) {
      const [verb = "", ...rest] = argv;
      const { code, stdout, stderr } = await relay.run(["a2a", verb, "无名", ...rest]);
      assert.deepEqual([code, stdout], [1, ""], argv.join(" "));
      assert.match(stderr, /no agent is registered as "无名"[^]*`a2a-relay agents` lists who is registered/);
    }
  });

  it("says which task there is not", async () => {
    await using relay = await openCliRelay();
    for (const verb of ["get", "cancel", "subscribe"]) {
      const { code, stderr } = await relay.run(["a2a", verb, "zhiwei", "没有"]);
      assert.deepEqual([code, stderr], [1, "error: there is no task 没有\n"], verb);
    }
  });

  it("exits with 4 when the relay is not there, and says so as any command does", async () => {
    const env = { A2A_RELAY_URL: NO_RELAY };
    for (const argv of [
      ["card", "zhiwei"],
      ["send", "zhiwei", "x"],
      ["get", "zhiwei", "t", "--json"],
    ]) {
      const { code, stdout, stderr } = await cliRun(["a2a", ...argv], { env });
      assert.deepEqual([code, stdout], [4, ""]);
      assert.match(stderr, /^error: cannot reach the relay at http/);
    }
  });

  it("exits with 2 for a wrong command line, and calls no agent", async () => {
    await using relay = await openCliRelay();
    const mistakes: readonly (readonly [argv: readonly string[], why: RegExp])[] = [
      [["send", "zhiwei", "x", "--dialect", "2.0"], /Allowed choices are 1\.0, 0\.3, 0\.2, 0\.1/],
      [["send", "zhiwei", "x", "--stream", "--no-wait"], /cannot be used with/],
      [["send", "zhiwei"], /missing required argument 'text'/],
      [["get", "zhiwei", "t", "--history", "all"], /Expected a whole number/],
      [["card", ""], /expected the name of an agent/],
      [["card", "https://"], /expected an address such as/],
      [["card", "https://me:secret@agent.example.org"], /must not hold a user or password/],
    ];
    for (const [argv, why] of mistakes) {
      const { code, stdout, stderr } = await relay.run(["a2a", ...argv]);
      assert.deepEqual([code, stdout], [2, ""], argv.join(" "));
      assert.match(stderr, why);
      assert.ok(!stderr.includes("secret"));
    }
  });
});
