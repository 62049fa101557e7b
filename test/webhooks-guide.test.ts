import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { childEnv } from "./support/child-env.ts";
import { LULU, openHttpRelay, ZHIWEI } from "../packages/relay/testing/http-relay.ts";

/**
 * Runs the programs of docs/guides/webhooks.md as they stand, but for the relay's address: those that sign send to
 * a relay, those that verify get what a relay has pushed.
 */

const ROOT = join(import.meta.dirname, "..");
const GUIDE = readFileSync(join(ROOT, "docs", "guides", "webhooks.md"), "utf8");
const PROGRAM_MS_MAX = 60_000;
const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/;
const NO_PYTHON = spawnSync("python3", ["--version"]).status === 0 ? false : "there is no python3 here";

/** The one program in that language whose text has these words. */
function programOf(language: "python" | "ts", words: string): string {
  const blocks = [...GUIDE.matchAll(/^```(\w+)\n(.*?)\n```$/gms)];
  const found = blocks.filter(([, each, text]) => each === language && text?.includes(words) === true);
  assert.equal(found.length, 1, `programs in ${language} with ${words}`);
  return found[0]?.[2] ?? "";
}

interface RunOptions {
  readonly signal?: AbortSignal;
  readonly onOutput?: (text: string) => void;
}

/** Runs a program outside the checkout, and yet with its packages; answers with what it printed. */
async function run(
  language: "python" | "ts",
  text: string,
  env: Readonly<Record<string, string>>,
  { signal, onOutput }: RunOptions = {},
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "webhooks-guide-"));
  try {
    await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }\n');
    const file = join(folder, language === "python" ? "program.py" : "program.ts");
    await writeFile(file, text);
    const command = language === "python" ? "python3" : process.execPath;
    const options = language === "python" ? [file] : ["--conditions=source", file];
    const running = promisify(execFile)(command, options, {
      env: childEnv({ PYTHONIOENCODING: "utf-8", ...env }),
      timeout: PROGRAM_MS_MAX,
      ...(signal === undefined ? {} : { signal }),
    });
    if (onOutput !== undefined) running.child.stdout?.on("data", onOutput);
    return (await running).stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** One push of a real relay, as it came. */
async function pushed(): Promise<{
  readonly secret: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}> {
  const arrived = Promise.withResolvers<{ headers: IncomingHttpHeaders; body: string }>();
  const receiver = createServer((request, response) => {
    const { headers } = request;
    buffer(request)
      .then((bytes) => arrived.resolve({ headers, body: bytes.toString() }))
      .catch(arrived.reject)
      .finally(() => response.writeHead(204).end());
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  try {
    await using relay = await openHttpRelay({ env: { A2A_RELAY_EGRESS_ALLOW: "127.0.0.0/8" } });
    const { port } = receiver.address() as AddressInfo;
    const { json } = await relay.post("/agents/register", {
      agent_id: ZHIWEI,
      callback_url: `http://127.0.0.1:${port}/hooks/messages`,
      push: "webhook",
    });
    await relay.send({ body: "知微你好 😀" });
    const { headers, body } = await arrived.promise;
    return { secret: json.push_secret ?? "", headers, body };
  } finally {
    receiver.closeAllConnections();
    receiver.close();
  }
}

describe("the guide to webhooks", () => {
  it("signs in Python what the relay takes", { skip: NO_PYTHON }, () =>
    assertSigns("python", programOf("python", "/api/a2a/inbox")),
  );

  it("signs with the SDK what the relay takes", () => assertSigns("ts", programOf("ts", "/api/a2a/inbox")));

  it("verifies with the SDK what the relay pushes, and nothing else", async () => {
    const { secret, headers, body } = await pushed();
    await using receiver = await GuideReceiver.start(secret);
    const deliver = async (text: string): Promise<number> => {
      const sent = Object.entries(headers).filter(([name]) => /^webhook-|^content-type$/.test(name));
      const own = Object.fromEntries(sent.map(([name, value]) => [name, String(value)]));
      return (await fetch(receiver.url, { method: "POST", headers: own, body: text })).status;
    };
    assert.equal(await deliver(body), 204);
    assert.equal(await deliver(body.replace("知微", "知己")), 401);
  });

  it("verifies in Python what the relay pushes, and nothing else", { skip: NO_PYTHON }, async () => {
    const program = programOf("python", "webhook-signature");
    const { secret, headers, body } = await pushed();
    const [id, signature] = [String(headers["webhook-id"]), String(headers["webhook-signature"])];
    const stale = { ...headers, "webhook-timestamp": String(Number(headers["webhook-timestamp"]) - 301) };
    const twice = { ...headers, "webhook-signature": `v1,AAAA ${signature}` };
    const tries = [
      [secret, headers, body],
      [secret, twice, body],
      [secret, headers, body.replace("知微", "知己")],
      [secret, { ...headers, "webhook-id": `${id}0` }, body],
      [secret, stale, body],
      [`whsec_${"A".repeat(43)}=`, headers, body],
      [secret, { ...headers, "webhook-signature": "v1,知微" }, body],
    ];
    const asked = `
import json, os
for secret, headers, body in json.loads(os.environ["TRIES"]):
    print(verify(secret, headers, body.encode()))`;
    const said = await run("python", program + asked, { TRIES: JSON.stringify(tries) });
    assert.deepEqual(said.trim().split("\n"), ["True", "True", ...Array<string>(5).fill("False")]);
  });
});

/** The receiver of the guide, on its own port. */
class GuideReceiver implements AsyncDisposable {
  readonly url: string;
  readonly #ended: Promise<unknown>;
  readonly #stop: () => void;

  private constructor(url: string, ended: Promise<unknown>, stop: () => void) {
    this.url = url;
    this.#ended = ended;
    this.#stop = stop;
  }

  static async start(secret: string): Promise<GuideReceiver> {
    const program = programOf("ts", "verifyWebhook");
    const listen = '.listen(3000, "127.0.0.1");';
    assert.ok(program.endsWith(listen), "the guide's receiver listens");
    const sayPort = `.listen(0, "127.0.0.1", function () { console.log("port", this.address().port); });`;
    const port = Promise.withResolvers<string>();
    const stopping = new AbortController();
    const options = { signal: stopping.signal, onOutput: (text: string) => readPort(text, port.resolve) };
    const ended = run("ts", program.replace(listen, sayPort), { A2A_PUSH_SECRET: secret }, options);
    // It ends by being stopped; before that, whatever it failed of.
    ended.catch(port.reject);
    return new GuideReceiver(`http://127.0.0.1:${await port.promise}`, ended, () => stopping.abort());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    await this.#ended.catch(() => undefined);
  }
}

function readPort(text: string, found: (port: string) => void): void {
  const port = /^port (\d+)$/m.exec(text)?.[1];
  if (port !== undefined) found(port);
}

async function assertSigns(language: "python" | "ts", program: string): Promise<void> {
  await using relay = await openHttpRelay();
  const { key_id, key } = (await relay.post("/keys", { agent_id: LULU, use: "sign" })).json;
  const env = { A2A_KEY_ID: key_id, A2A_SIGNING_SECRET: key };
  assert.ok(program.includes("http://127.0.0.1:8080"), "the guide uses the usual address");
  await run(language, program.replaceAll("http://127.0.0.1:8080", relay.url), env);
  const { messages } = (await relay.get(`/mailbox/${ZHIWEI}?peek=true`)).json;
  assert.deepEqual(
    messages.map(({ sender_agent_id, message }) => [sender_agent_id, message["key_id"], message.body]),
    [[LULU, key_id, "磁盘还剩多少？"]],
  );
  // What is signed stays as it came, so the guide writes its times as the relay does.
  for (const { message } of messages) {
    assert.match(message.created_at, UTC);
    assert.match(String(message["signed_at"]), UTC);
  }
}
