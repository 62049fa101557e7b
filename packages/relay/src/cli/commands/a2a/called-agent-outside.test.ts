import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { startSdkAgent } from "../../../../../client/testing/sdk-agent-server.ts";
import { rpcStream, startWireAgent, wireCard } from "../../../../../client/testing/wire-agent.ts";
import { WireServer } from "../../../../../client/testing/wire-server.ts";
import { startCli } from "../../../../testing/cli-following.ts";
import { type CliRun, cliRun, type CliRunOptions } from "../../../../testing/cli-run.ts";

const BOUND = { timeout: 20_000 };
const KEY = "the-key-of-the-relay-that-no-agent-sees";

/** No relay listens there, and none is asked. */
const NO_RELAY = { A2A_RELAY_URL: "http://127.0.0.1:9", A2A_RELAY_API_KEY: KEY };

function a2a(argv: readonly string[], options: CliRunOptions = {}): Promise<CliRun> {
  return cliRun(["a2a", ...argv], { env: NO_RELAY, signal: AbortSignal.timeout(15_000), ...options });
}

async function ok(argv: readonly string[], options?: CliRunOptions): Promise<string> {
  const { code, stdout, stderr } = await a2a(argv, options);
  assert.equal(code, 0, stderr);
  return stdout;
}

describe("a2a with an agent of the official SDK", BOUND, () => {
  it("shows its card: who it is, where, its skills, what it asks for", async () => {
    const card = {
      securitySchemes: {
        token: { httpAuthSecurityScheme: { scheme: "Bearer", description: "问管理员要" } },
        key: { apiKeySecurityScheme: { location: "header", name: "X-Key" } },
      },
      securityRequirements: [{ schemes: { token: { list: ["read"] } } }, { schemes: { key: { list: [] } } }],
      provider: { organization: "工作室", url: "https://studio.example" },
    };
    await using agent = await startSdkAgent({ name: "回声", card });
    const stdout = await ok(["card", agent.url]);
    assert.match(stdout, /^回声 {2}1\.2\.3\n {2}description +回声：an agent/);
    assert.match(stdout, /^ {2}provider +工作室 {2}https:\/\/studio\.example$/m);
    assert.match(stdout, /^ {2}can +stream, push, show an extended card$/m);
    assert.ok(
      stdout.includes(`interfaces\n  JSONRPC 1.0    ${agent.rpcUrl}\n  HTTP+JSON 1.0  ${agent.restUrl}\n`),
    );
    assert.match(stdout, /^skills\n {2}echo {2}Echo: says it again {2}\[test\]$/m);
    assert.match(stdout, /^ {2}token +httpAuth {2}Bearer: 问管理员要$/m);
    assert.match(stdout, /^ {2}key +apiKey {2}header {2}X-Key$/m);
    assert.match(stdout, /^ {2}needed +token \(read\), or key$/m);
    const json = JSON.parse(await ok(["card", agent.cardUrl, "--json"])) as Record<string, unknown>;
    assert.equal(json["name"], "回声");
  });

  it("sends, streams, gets and cancels in the dialects that it speaks", async () => {
    for (const dialect of ["1.0", "0.3"] as const) {
      await using agent = await startSdkAgent({ dialect });
      for (const more of [[], ["--dialect", dialect]]) {
        const sent = await ok(["send", agent.url, "你好", ...more]);
        assert.match(sent, /^\S+ {2}completed\n[^]*^artifact answer\n {2}echo: 你好\n$/m);
        const [id = ""] = sent.split(" ");
        assert.match(await ok(["get", agent.url, id, "--history", "1", ...more]), /^user\n {2}你好$/m);
        const streamed = await ok(["send", agent.url, "stream 春 夏", "--stream", ...more]);
        assert.match(
          streamed,
          /^task {2}\S+ {2}submitted\nstatus {2}working\nartifact {2}answer {2}春\nartifact {2}answer \+ {2}夏\nstatus {2}completed\n$/,
        );
        const begun = await ok(["send", agent.url, "wait", "--no-wait", ...more]);
        const [held = ""] = begun.split(" ");
        assert.match(await ok(["cancel", agent.url, held, ...more]), /^\S+ {2}canceled\n/);
      }
    }
  });

  it("asks and is answered", async () => {
    await using agent = await startSdkAgent();
    const { code, stdout, stderr } = await a2a(["send", agent.url, "ask 哪种语言？"]);
    assert.equal(code, 0);
    assert.match(stdout, /^\S+ {2}input-required\n[^]*^agent\n {2}哪种语言？$/m);
    const [, advice = ""] = /answer with: a2a-relay a2a (.+)\n$/.exec(stderr) ?? [];
    assert.match(await ok(advice.replace("TEXT", "中文").split(" ")), / {2}answered: 中文\n$/);
  });

  it("shows a plain message, and parts of every kind", async () => {
    await using agent = await startSdkAgent();
    assert.equal(await ok(["send", agent.url, "message 只是一句"]), "只是一句\n");
    assert.equal(await ok(["send", agent.url, "message 只是一句", "--stream"]), "message  只是一句\n");
    const parts = await ok(["send", agent.url, "-"], { stdin: "parts" });
    assert.match(parts, /^ {2}看附件\n {2}\[data\] \{"answer":42\}\n {2}\[file a\.txt, text\/plain; --json/m);
    assert.match(parts, /^ {2}\[link image\/png\] https:\/\/example\.org\/a\.png$/m);
  });

  it("ends with code 1 when it fails, rejects, breaks or knows no such task", async () => {
    await using agent = await startSdkAgent();
    for (const [text, why] of [
      ["fail 词典坏了", /failed: 词典坏了\n$/],
      ["reject 不译", /was rejected: 不译\n$/],
    ] as const) {
      for (const more of [[], ["--stream"]]) {
        const { code, stderr } = await a2a(["send", agent.url, text, ...more]);
        assert.equal(code, 1);
        assert.match(stderr, why);
      }
    }
    const unknown = await a2a(["get", agent.url, "没有"]);
    assert.deepEqual([unknown.code, unknown.stderr], [1, "error: Task not found: 没有\n"]);
    const done = (await ok(["send", agent.url, "好"])).split(" ")[0] ?? "";
    const late = await a2a(["cancel", agent.url, done]);
    assert.deepEqual([late.code, late.stdout], [1, ""]);
    assert.match(late.stderr, /^error: /);
  });

  it("says what an authorisation is waited for, and that a task is followed with subscribe", async () => {
    await using agent = await startSdkAgent();
    const { code, stderr } = await a2a(["send", agent.url, "auth 请登录"]);
    assert.equal(code, 0);
    assert.match(
      stderr,
      /^the agent waits for an authorisation; follow the task with: a2a-relay a2a subscribe http/,
    );
    const begun = await ok(["send", agent.url, "wait", "--no-wait"]);
    const [id = ""] = begun.split(" ");
    const following = startCli(["a2a", "subscribe", agent.url, id], { env: NO_RELAY });
    await following.prints(/^task /);
    agent.finish(id, "等到了");
    const { code: ended, stdout } = await following.ended;
    assert.equal(ended, 0);
    assert.match(stdout, /^artifact {2}answer {2}等到了\nstatus {2}completed\n$/m);
  });

  it("does without streams where the card says that there are none", async () => {
    await using agent = await startSdkAgent({ isStreaming: false });
    assert.match(await ok(["send", agent.url, "你好", "--stream"]), /^task {2}\S+ {2}completed\n$/m);
  });
});

describe("a2a and what goes to whom", BOUND, () => {
  it("never shows the relay's key to another agent", async () => {
    await using agent = await startSdkAgent();
    const given = ["--api-key", `${KEY}-too`];
    await ok(["card", agent.url, ...given]);
    await ok(["send", agent.url, "你好", ...given]);
    await ok(["send", agent.url, "你好", "--stream"]);
    assert.ok(agent.requests.length >= 4);
    assert.ok(agent.requests.every(({ headers }) => headers.authorization === undefined));
  });

  it("shows it to the relay, and not to where the relay or its cards lead", async () => {
    await using stranger = await startWireAgent({
      SendMessage: () => ({
        result: { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "是我" }] } },
      }),
    });
    await using relay = await WireServer.start(({ method, path }) => {
      if (method === "GET") return { json: wireCard(stranger.url) };
      if (path.startsWith("/t/acme/"))
        return { status: 307, headers: { location: `${stranger.url}/rpc` }, text: "" };
      return { status: 404, text: "" };
    });
    const env = { A2A_RELAY_URL: `${relay.url}/t/acme/`, A2A_RELAY_API_KEY: KEY };
    assert.equal(await ok(["send", "知微", "你好"], { env }), "是我\n");
    await ok(["card", "知微"], { env });
    // By address, and as its card says: with the key, then without.
    assert.equal(await ok(["send", `${relay.url}/t/acme/agents/x`, "你好"], { env }), "是我\n");
    // A neighbour of the relay at the same host is not the relay.
    await ok(["card", `${relay.url}/other`], { env });
    const seen = relay.requests.map(({ method, path, headers }) => [method, path, headers.authorization]);
    const bearer = `Bearer ${KEY}`;
    const name = encodeURIComponent("知微");
    assert.deepEqual(seen, [
      ["POST", `/t/acme/agents/${name}/a2a`, bearer],
      ["GET", `/t/acme/agents/${name}/.well-known/agent-card.json`, bearer],
      ["GET", "/t/acme/agents/x/.well-known/agent-card.json", bearer],
      ["GET", "/other/.well-known/agent-card.json", undefined],
    ]);
    assert.equal(stranger.requests.length, 2);
    assert.ok(stranger.requests.every(({ headers }) => headers.authorization === undefined));
  });

  it("gives another agent the credentials that are meant for it", async () => {
    await using agent = await startSdkAgent({ apiKey: "their-key" });
    const { code, stderr } = await a2a(["send", agent.url, "你好"]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /answered 401[^]*here that is --headers; a key of the relay is not sent to other agents\n$/,
    );
    const directory = await mkdtemp(join(tmpdir(), "a2a-headers-"));
    try {
      const file = join(directory, "headers.json");
      await writeFile(file, JSON.stringify({ Authorization: "Bearer their-key" }));
      assert.match(await ok(["send", agent.url, "你好", "--headers", file]), /echo: 你好/);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it("does not let an agent put words into a terminal or a shell", async () => {
    const task = {
      id: "t'; rm -rf ~ #\u001b[2J",
      status: { state: "TASK_STATE_INPUT_REQUIRED" },
      artifacts: [{ name: "\u202eexe", parts: [{ text: "\u001b]0;x\u0007\n\u009b31m" }, {}] }],
    };
    await using agent = await startWireAgent({ SendMessage: () => ({ result: { task } }) });
    const { code, stdout, stderr } = await a2a(["send", agent.url, "你好"]);
    assert.equal(code, 0);
    assert.equal(
      stdout,
      "t'; rm -rf ~ #␛[2J  input-required\nartifact <U+202E>exe\n  ␛]0;x␇\n  <U+009B>31m\n  [something else; --json shows it]\n",
    );
    assert.ok(stderr.endsWith(`--task 't'\\''; rm -rf ~ #␛[2J'\n`), stderr);
  });
});

describe("a2a with an address where no agent is", BOUND, () => {
  it("exits with 4 when nothing answers", async () => {
    // Another process could have taken a port that was closed.
    await using gone = await WireServer.start(() => "reset");
    for (const argv of [
      ["card", gone.url],
      ["send", gone.url, "你好"],
      ["subscribe", gone.url, "t"],
    ]) {
      const { code, stdout, stderr } = await a2a(argv);
      assert.deepEqual([code, stdout], [4, ""]);
      assert.match(
        stderr,
        /^error: GET http\S+ failed: .*is the agent running, and is this its address\?\n$/,
      );
    }
  });

  it("exits with 1 when something else answers there", async () => {
    await using web = await WireServer.start(() => ({ text: "<html>你好</html>" }));
    const { code, stdout, stderr } = await a2a(["send", `${web.url}/shop`, "你好"]);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /^error: no agent card at http\S+\/shop\/\.well-known\/agent-card\.json or http/);
  });

  it("calls an endpoint that has no card, if the dialect is said", async () => {
    await using agent = await startSdkAgent({ dialect: "0.3" });
    assert.equal((await a2a(["send", agent.rpcUrl, "你好"])).code, 1);
    assert.match(await ok(["send", agent.rpcUrl, "你好", "--dialect", "0.3"]), /echo: 你好/);
    const other = await a2a(["send", agent.url, "你好", "--dialect", "0.1"]);
    assert.equal(other.code, 1);
    assert.match(other.stderr, /offers JSONRPC 0\.3.*wants/);
  });

  it("ends at Ctrl-C while an agent says nothing", async () => {
    await using agent = await startWireAgent({
      SendMessage: () => "silence",
      SendStreamingMessage: () =>
        rpcStream(
          [["1", { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } }]],
          "silence",
        ),
    });
    const asked = agent.next(({ body }) => body["method"] === "SendMessage");
    const waiting = startCli(["a2a", "send", agent.url, "你好"], { env: NO_RELAY });
    await asked;
    assert.deepEqual(await waiting.interrupt(), { code: 130, stdout: "", stderr: "" });
    const streaming = startCli(["a2a", "send", agent.url, "你好", "--stream"], { env: NO_RELAY });
    await streaming.prints(/^1 {2}task {2}t {2}working$/m);
    const { code, stderr } = await streaming.interrupt();
    assert.deepEqual([code, stderr], [130, ""]);
  });
});
