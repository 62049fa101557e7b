import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { describe, it } from "node:test";
import { childEnv } from "../support/child-env.ts";
import { RelayClient } from "@a2a-relay/client";
import type { TaskView } from "@a2a-relay/protocol";
import { startChildRelay } from "../support/child-relay.ts";
import { eventually } from "../support/eventually.ts";

/** `a2a-relay agent` as people run it: processes that are started, killed and started again. */

const LAUNCHER = join(import.meta.dirname, "..", "..", "packages", "relay", "bin", "a2a-relay.js");
const SAID_MS_MAX = 30_000;
const LULU = "lulu@laptop";
const ZHIWEI = "zhiwei@studio";

class Scene implements AsyncDisposable {
  readonly client: RelayClient;
  readonly folder: string;
  readonly #url: string;
  readonly #stack: AsyncDisposableStack;

  private constructor(url: string, folder: string, stack: AsyncDisposableStack) {
    this.client = new RelayClient({ url });
    this.folder = folder;
    this.#url = url;
    this.#stack = stack;
  }

  static async open(): Promise<Scene> {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), "agent-process-"));
    stack.defer(() => rm(folder, { recursive: true }));
    const relay = stack.use(await startChildRelay());
    const scene = new Scene(relay.url, folder, stack.move());
    await scene.client.register({ agent_id: LULU });
    return scene;
  }

  async write(text: string, name = "talk.yaml"): Promise<string> {
    const path = join(this.folder, name);
    await writeFile(path, text);
    return path;
  }

  /** A separate process; ended with the scene at the latest. */
  run(...argv: readonly string[]): Command {
    return this.#stack.use(new Command(["agent", ...argv], { A2A_RELAY_URL: this.#url, NO_COLOR: "1" }));
  }

  async ask(body: string, more: object = {}): Promise<string> {
    const { receipt } = await this.client.send({ from: LULU, to: ZHIWEI, type: "request", body, ...more });
    return receipt.task_id ?? "";
  }

  reaches(taskId: string, state: TaskView["state"]): Promise<TaskView> {
    return eventually(
      () => this.client.task(taskId),
      (task) => task.state === state,
    );
  }

  async results(): Promise<readonly string[]> {
    const { messages } = await this.client.readMailbox(LULU, { peek: true });
    return messages.map(({ message }) => message.body);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

class Command implements AsyncDisposable {
  stdout = "";
  stderr = "";
  readonly exited: Promise<readonly [code: number | null, signal: string | null]>;
  readonly #process: ChildProcessByStdio<null, Readable, Readable>;

  constructor(argv: readonly string[], env: Readonly<Record<string, string>>) {
    this.#process = spawn(process.execPath, [LAUNCHER, ...argv], {
      env: childEnv(env),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process.stdout.setEncoding("utf8").on("data", (text: string) => void (this.stdout += text));
    this.#process.stderr.setEncoding("utf8").on("data", (text: string) => void (this.stderr += text));
    this.exited = once(this.#process, "close") as Promise<[number | null, string | null]>;
  }

  /** Resolves once it has said this. */
  async said(words: RegExp): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = (): void => {
      if (words.test(this.stdout + this.stderr)) resolve();
    };
    const late = setTimeout(
      () => reject(new Error(`it did not say ${String(words)}: ${this.stderr}`)),
      SAID_MS_MAX,
    );
    this.#process.stdout.on("data", check);
    this.#process.stderr.on("data", check);
    this.exited.then(() => reject(new Error(`it ended: ${this.stderr}`)), reject);
    check();
    await promise.finally(() => clearTimeout(late));
  }

  async end(signal: NodeJS.Signals): Promise<number | string | null> {
    this.#process.kill(signal);
    const [code, by] = await this.exited;
    return by ?? code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    await this.end("SIGKILL");
  }
}

describe("a2a-relay agent replay", () => {
  it("answers until it is stopped, with a line for each exchange", async () => {
    await using scene = await Scene.open();
    const path = await scene.write(
      `version: 1\nagent: ${ZHIWEI}\nexchanges:\n  - { name: 问候, match: { text: 知微你好 }, reply: [{ reply: 你好 }] }\n`,
    );
    const replay = scene.run("replay", "--cassette", path, "--register");
    await replay.said(/zhiwei@studio answers from .*talk\.yaml: 1 exchanges, loop/);
    assert.equal((await scene.reaches(await scene.ask("知微你好"), "completed")).status_text, "你好");
    assert.equal((await scene.reaches(await scene.ask("再见"), "failed")).result_status, "error");
    await replay.said(/nothing matched/);
    assert.equal(await replay.end("SIGTERM"), 130);
    assert.deepEqual(replay.stdout.trim().split("\n"), [
      `replied  ${LULU}: 知微你好  (问候, ${path}:4)`,
      `failed  ${LULU}: 再见  (nothing matched)`,
    ]);
  });

  it("ends by itself with --once, and with code 1 when --strict and something did not match", async () => {
    await using scene = await Scene.open();
    await scene.client.register({ agent_id: ZHIWEI, aliases: ["zhiwei"] });
    const path = await scene.write(
      "version: 1\nexchanges:\n  - { match: { text: a }, reply: [{ reply: 一 }] }\n  - { reply: [{ reply: 二 }] }\n",
    );
    const run = (...flags: readonly string[]): Command =>
      scene.run("replay", "--as", "zhiwei", "--cassette", path, "--once", "--json", ...flags);
    for (const body of ["a", "b"]) await scene.ask(body);
    const through = run("--strict");
    assert.deepEqual(await through.exited, [0, null]);
    const outcomes = through.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const lines = outcomes.map(({ outcome, matched, line }) => [outcome, matched, line].join(" "));
    assert.deepEqual(new Set(lines), new Set(["replied true 3", "replied true 4"]));
    // The one for anything is used up by the first; the second finds nothing, the third what is left.
    const strict = run("--strict");
    await strict.said(/answers from/);
    await scene.reaches(await scene.ask("b"), "completed");
    await scene.reaches(await scene.ask("b"), "failed");
    await scene.ask("a");
    assert.deepEqual(await strict.exited, [1, null]);
    assert.match(strict.stderr, /1 messages came that .*talk\.yaml does not match/);
  });

  it("says which line of a cassette is wrong, and that the agent is unknown, before it takes messages", async () => {
    await using scene = await Scene.open();
    const broken = scene.run(
      "replay",
      "--as",
      ZHIWEI,
      "--cassette",
      await scene.write("version: 1\nexchanges: 7\n"),
    );
    assert.deepEqual(await broken.exited, [1, null]);
    assert.match(broken.stderr, /talk\.yaml:2: exchanges: expected a list, got 7/);
    const path = await scene.write("version: 1\nexchanges: []\n");
    const unknown = scene.run("replay", "--as", ZHIWEI, "--cassette", path);
    assert.deepEqual(await unknown.exited, [1, null]);
    assert.match(unknown.stderr, /no agent is registered as "zhiwei@studio"/);
  });

  for (const [what, more] of [
    ["work that may not be done twice", {}],
    ["idempotent work", { idempotency: { duplicate_safety: "idempotent", key: "poem" } }],
  ] as const) {
    it(`killed in the middle of ${what} and started again, it answers once`, async () => {
      await using scene = await Scene.open();
      const script = (delayMs: number): string => `version: 1
agent: ${ZHIWEI}
exchanges:
  - reply:
      - status: 想一想
      - artifact: { name: 诗, chunks: [床前, 明月光] }
      - delay_ms: ${delayMs}
      - reply: 低头思故乡
`;
      const flags = ["--register"];
      const first = scene.run("replay", "--cassette", await scene.write(script(3_600_000)), ...flags);
      await first.said(/answers from/);
      const taskId = await scene.ask("背诗", more);
      await eventually(
        () => scene.client.task(taskId),
        ({ artifacts }) => artifacts[0]?.parts.length === 2,
      );
      assert.equal(await first.end("SIGKILL"), "SIGKILL");
      const second = scene.run("replay", "--cassette", await scene.write(script(0)), ...flags);
      await second.said(/answers from/);
      const task = await scene.reaches(taskId, "completed");
      assert.deepEqual(
        task.artifacts.map(({ parts }) => parts.map((part) => part["text"])),
        [["床前", "明月光"]],
      );
      assert.equal(await second.end("SIGTERM"), 130);
      assert.deepEqual(await scene.results(), ["低头思故乡"]);
    });
  }

  it("dies where the cassette says so, without a word to the relay", async () => {
    await using scene = await Scene.open();
    const path = await scene.write(
      `version: 1\nagent: ${ZHIWEI}\nexchanges: [{ reply: [{ crash: 1 }, { reply: 活过来了 }] }]\n`,
    );
    const flags = ["replay", "--cassette", path, "--register"];
    const first = scene.run(...flags);
    await first.said(/answers from/);
    const taskId = await scene.ask("倒下");
    assert.deepEqual(await first.exited, [null, "SIGKILL"]);
    assert.match(first.stdout, /^crashed {2}/);
    assert.equal((await scene.client.task(taskId)).state, "submitted");
    scene.run(...flags);
    assert.equal((await scene.reaches(taskId, "completed")).status_text, "活过来了");
  });
});

describe("a2a-relay agent record", () => {
  it("writes a cassette that replay answers from, also when it is killed in the middle", async () => {
    await using scene = await Scene.open();
    const real = await scene.write(
      "version: 1\nexchanges: [{ reply: [{ status: 想 }, { delay_ms: 700 }, { reply: 诗在此 }] }]\n",
      "real.yaml",
    );
    const upstream = scene.run("replay", "--as", "zhiwei@cloud", "--cassette", real, "--register");
    await upstream.said(/answers from/);
    const path = join(scene.folder, "recorded.yaml");
    const flags = ["--as", ZHIWEI, "--upstream", "zhiwei@cloud", "--cassette", path];
    const record = (): Command => scene.run("record", ...flags, "--register");
    const first = record();
    await first.said(/passes its messages on to zhiwei@cloud/);
    const taskId = await scene.ask("写诗");
    await scene.reaches(taskId, "working");
    assert.equal(await first.end("SIGKILL"), "SIGKILL");
    const second = record();
    assert.equal((await scene.reaches(taskId, "completed")).status_text, "诗在此");
    await second.said(/recorded {2}lulu@laptop: 写诗 {2}\(completed\)/);
    assert.equal(await second.end("SIGTERM"), 130);
    const text = await readFile(path, "utf8");
    assert.equal(text.match(/text: 写诗/g)?.length, 1, text);
    assert.match(text, /reply: 诗在此/);
    assert.equal(upstream.stdout.trim().split("\n").length, 1, "the real agent was asked once");
    const replay = scene.run("replay", "--as", ZHIWEI, "--cassette", path);
    await replay.said(/answers from/);
    assert.equal(await upstream.end("SIGTERM"), 130);
    assert.equal((await scene.reaches(await scene.ask("写诗"), "completed")).status_text, "诗在此");
  });
});
