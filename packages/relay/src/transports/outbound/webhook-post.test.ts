import assert from "node:assert/strict";
import { randomFillSync } from "node:crypto";
import { describe, it } from "node:test";
import type { MailboxItem, MailboxNotice, PushPayload } from "@a2a-relay/protocol";
import { ZHIWEI } from "../../../testing/core-on-memory.ts";
import { FakeClock, NOON_MS } from "../../../testing/fake-clock.ts";
import { anAnswer, FakeOutside } from "../../../testing/fake-outside.ts";
import { newSigningSecret } from "../../core/keys/key-maker.ts";
import type { Webhook } from "../../core/ports/outbound.ts";
import { OutboundFailure } from "../egress/http-client.ts";
import { HttpOutbound } from "./http-outbound.ts";
import { webhookHeaders } from "./webhook-post.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const WEBHOOK: Webhook = {
  url: "https://zhiwei.example/收信",
  tenant: "default",
  agentId: ZHIWEI,
  messageId: "msg_1",
  acceptedAtMs: NOON_MS,
  content: { item: { message_id: "msg_1" } as MailboxItem },
  secrets: [SECRET],
};

function setup() {
  const outside = new FakeOutside();
  const publicUrl = (): string => "http://relay.test";
  const settings = { publicUrl, userAgent: "a2a-relay/test", pushTimeoutMs: 15_000 };
  const outbound = new HttpOutbound(outside, new FakeClock(), settings);
  const stopping = new AbortController();
  const push = (said: Partial<Webhook> = {}) =>
    outbound.pushWebhook({ ...WEBHOOK, ...said }, stopping.signal);
  return { outside, stopping, push };
}

describe("a webhook", () => {
  it("is a signed POST of JSON, and the answer is its report", async () => {
    const { outside, push } = setup();
    outside.receiver = () => anAnswer(503, { headers: { "retry-after": "7" }, text: "太忙" });
    assert.deepEqual(await push(), {
      status: 503,
      error: null,
      answer: "太忙",
      outcome: { kind: "failed", reason: "the endpoint answered 503", retryAfterMs: 7_000 },
    });
    const { url, method, headers, body = "", timeoutMs, answerBytesMax } = outside.last;
    assert.deepEqual([url, method, timeoutMs, answerBytesMax], [WEBHOOK.url, "POST", 15_000, 1_024]);
    assert.deepEqual(headers, {
      "content-type": "application/json",
      "user-agent": "a2a-relay/test",
      ...webhookHeaders({ messageId: "msg_1", body }, [SECRET], NOON_MS),
    });
    const timestamp = new Date(NOON_MS).toISOString();
    assert.deepEqual(JSON.parse(body), {
      type: "message.available",
      timestamp,
      data: { message_id: "msg_1" },
    });
  });

  for (const [tenant, mailboxUrl] of [
    ["default", "http://relay.test/mailbox/zhiwei%40known-blocks1"],
    ["甲", "http://relay.test/t/%E7%94%B2/mailbox/zhiwei%40known-blocks1"],
  ] as const) {
    it(`of a notice names the URL of the mailbox in the tenant ${tenant}`, async () => {
      const { outside, push } = setup();
      await push({ tenant, content: { notice: { message_id: "msg_1" } as MailboxNotice } });
      const { type, data } = JSON.parse(outside.last.body ?? "") as PushPayload;
      assert.equal(type, "message.notice");
      assert.deepEqual(data, { message_id: "msg_1", mailbox_url: mailboxUrl });
    });
  }

  it("without an answer reports why", async () => {
    const { outside, push } = setup();
    outside.receiver = () => {
      throw new OutboundFailure("timeout", '"zhiwei.example" was silent');
    };
    const report = await push();
    assert.deepEqual([report?.status, report?.answer], [null, null]);
    assert.equal(report?.error, '"zhiwei.example" was silent');
    assert.equal(report.outcome.kind, "failed");
  });

  it("has no report when it is stopped, but one when the connection ends by itself", async () => {
    const { outside, push, stopping } = setup();
    outside.receiver = () => {
      throw new OutboundFailure("aborted", "the connection ended");
    };
    assert.equal((await push())?.outcome.kind, "failed");
    outside.receiver = outside.hanging;
    const pushed = push();
    stopping.abort();
    assert.equal(await pushed, undefined);
  });
});

describe("signing by Standard Webhooks", () => {
  it("gives the signature of the specification's example", () => {
    const message = { messageId: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: '{"test": 2432232314}' };
    assert.deepEqual(webhookHeaders(message, [SECRET], 1_614_265_330_999), {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  it("signs with each secret, separated by a blank", () => {
    const message = { messageId: "m1", body: "{}" };
    const one = webhookHeaders(message, [SECRET], 0)["webhook-signature"];
    const both = webhookHeaders(message, ["whsec_AAAA", SECRET], 0)["webhook-signature"] ?? "";
    assert.equal(both.split(" ").length, 2);
    assert.equal(both.split(" ")[1], one);
  });

  it("makes new secrets of 32 random bytes", () => {
    const fill = (bytes: Uint8Array): void => void randomFillSync(bytes);
    const secret = newSigningSecret(fill);
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.notEqual(secret, newSigningSecret(fill));
  });

  for (const [id, expected] of [
    ["msg_1", "msg_1"],
    ["a.b:c@d", "a.b:c@d"],
    ["知微 1", "%E7%9F%A5%E5%BE%AE%201"],
    ["100%", "100%25"],
    ["🦊", "%F0%9F%A6%8A"],
  ] as const) {
    it(`writes the id ${id} so that a header can carry it and no other id is written alike`, () => {
      assert.equal(webhookHeaders({ messageId: id, body: "" }, [SECRET], 0)["webhook-id"], expected);
    });
  }
});
