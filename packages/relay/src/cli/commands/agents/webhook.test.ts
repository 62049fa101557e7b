import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { SignedMessage } from "@a2a-relay/protocol";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";
import { cliRun } from "../../../../testing/cli-run.ts";

// The example that Standard Webhooks gives for its implementations.
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY = '{"test": 2432232314}';
const ID = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const TIMESTAMP = "1614265330";
const SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
// The example is some years old.
const LONG_AGO = ["--tolerance", "36500d"];
const HEADERS = ["--id", ID, "--timestamp", TIMESTAMP, "--signature", SIGNATURE];

/** Files in a new directory, by name. */
function files(
  texts: Readonly<Record<string, string>>,
): { readonly path: (name: string) => string } & Disposable {
  const directory = mkdtempSync(join(tmpdir(), "cli-webhook-"));
  const path = (name: string): string => join(directory, name);
  for (const [name, text] of Object.entries(texts)) writeFileSync(path(name), text);
  return { path, [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
}

describe("webhook verify", () => {
  const verify = ["webhook", "verify"];

  it("says that a signature is right, with the parts as options and the body on stdin", async () => {
    const { code, stdout, stderr } = await cliRun([...verify, "--secret", SECRET, ...HEADERS, ...LONG_AGO], {
      stdin: BODY,
    });
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `the signature is right\n  id    ${ID}\n  sent  2021-02-25T15:02:10.000Z\n`);
  });

  it("takes headers, body and secret from files, and answers with JSON", async () => {
    const lines = [
      "POST /hooks HTTP/1.1",
      "Host: x",
      `Webhook-Id: ${ID}`,
      `webhook-timestamp:${TIMESTAMP}`,
      `WEBHOOK-SIGNATURE: v1,AAAA ${SIGNATURE}`,
    ];
    using kept = files({
      secret: `${SECRET}\n`,
      body: BODY,
      lines: lines.join("\r\n"),
      json: JSON.stringify({
        "Webhook-Id": ID,
        "webhook-timestamp": TIMESTAMP,
        "webhook-signature": SIGNATURE,
      }),
    });
    for (const headers of ["lines", "json"]) {
      const argv = [
        ...verify,
        "--secret-file",
        kept.path("secret"),
        "--headers",
        kept.path(headers),
        kept.path("body"),
      ];
      const { code, stdout, stderr } = await cliRun([...argv, ...LONG_AGO, "--json"]);
      assert.equal(code, 0, stderr);
      const expected = {
        ok: true,
        id: ID,
        sent_at: "2021-02-25T15:02:10.000Z",
        payload: { test: 2_432_232_314 },
      };
      assert.deepEqual(JSON.parse(stdout), expected);
    }
  });

  const cases: readonly [string, readonly string[], string, number, RegExp][] = [
    [
      "an old timestamp",
      ["--secret", SECRET, ...HEADERS],
      BODY,
      1,
      /2021-02-25T15:02:10.000Z is more than 300 seconds from .*the time here/,
    ],
    [
      "a body that was changed",
      ["--secret", SECRET, ...HEADERS, ...LONG_AGO],
      `${BODY}\n`,
      1,
      /none of its signatures is right/,
    ],
    [
      "another secret",
      ["--secret", "whsec_AAAA", ...HEADERS, ...LONG_AGO],
      BODY,
      1,
      /none of its signatures is right/,
    ],
    [
      "a malformed secret",
      ["--secret", "hunter2", ...HEADERS],
      BODY,
      1,
      /secret: expected whsec_ followed by base64/,
    ],
    ["no secret", HEADERS, BODY, 2, /give the secret with --secret-file or --secret/],
    ["two secrets", ["--secret", SECRET, "--secret-file", "x", ...HEADERS], BODY, 2, /not with both/],
    [
      "no headers",
      ["--secret", SECRET],
      BODY,
      2,
      /webhook-id, webhook-timestamp, webhook-signature: not given/,
    ],
    [
      "a file that is not there",
      ["--secret-file", "./no-such-file", ...HEADERS],
      BODY,
      2,
      /--secret-file \.\/no-such-file cannot be read/,
    ],
  ];
  for (const [what, options, stdin, expected, message] of cases) {
    it(`exits with ${expected} after ${what}, and says so without the secret`, async () => {
      const { code, stdout, stderr } = await cliRun([...verify, ...options], { stdin });
      assert.equal(code, expected, stderr);
      assert.equal(stdout, "");
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /hunter2|MfKQ9r8GK/);
    });
  }
});

describe("webhook sign", () => {
  it("prints a message that the relay takes once, as one of the key's agent", async () => {
    await using relay = await openCliRelay();
    const { key_id, key } = await relay.json(["keys", "create", "--agent", LULU, "--sign"]);
    using kept = files({ secret: `${String(key)}\n` });
    const sign = ["webhook", "sign", "--key-id", String(key_id), "--secret-file", kept.path("secret")];
    const { stdout, code, stderr } = await cliRun(sign, {
      stdin: JSON.stringify({ to: "zhiwei", body: "知微你好" }),
    });
    assert.equal(code, 0, stderr);
    const signed = JSON.parse(stdout) as SignedMessage;
    const { message, receipt } = await relay.client.inbox(signed);
    assert.deepEqual([message.from, message.to, message.body], [LULU, ZHIWEI, "知微你好"]);
    await assert.rejects(relay.client.inbox(signed), { code: "conflict" });
    const again = await cliRun(sign, { stdin: stdout });
    assert.equal(
      (await relay.client.inbox(JSON.parse(again.stdout) as SignedMessage)).receipt.message_id,
      receipt.message_id,
    );
    const forged = { ...(JSON.parse(again.stdout) as SignedMessage), body: "changed" };
    await assert.rejects(relay.client.inbox(forged), { code: "unauthenticated" });
  });

  it("refuses what is no message, and a malformed secret", async () => {
    const sign = ["webhook", "sign", "--key-id", "key_1", "--secret"];
    const cases: readonly [string, string, RegExp][] = [
      [SECRET, "hello", /the message is not JSON/],
      [SECRET, "[1]", /the message is not a JSON object/],
      ["key_1.x", "{}", /expected whsec_/],
    ];
    for (const [secret, stdin, message] of cases) {
      const { code, stderr, stdout } = await cliRun([...sign, secret], { stdin });
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, message);
    }
  });
});
