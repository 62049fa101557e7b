import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import { coreOnMemory } from "../../../testing/core-on-memory.ts";
import { refused } from "../../../testing/refusal.ts";
import { contentDigest, parseMessageDraft, sendKeyOf } from "./message-draft.ts";

type Json = Readonly<Record<string, unknown>>;

function golden(name: string): Json {
  return JSON.parse(
    readFileSync(new URL(`../../../testing/golden/${name}`, import.meta.url), "utf8"),
  ) as Json;
}

const MESSAGE: Json = { to: "zhiwei@known-blocks1", body: "知微你好" };

describe("a message in a2a.v1", () => {
  it("is kept as it came, without its nulls", async () => {
    await using core = await coreOnMemory();
    const { receipt, message } = await core.messages.send(core.operator, golden("message.json"));
    const kept = await core.message(receipt.message_id);
    assert.deepEqual(kept, { ...golden("message-stored.json"), task_id: receipt.task_id });
    assert.deepEqual(message, kept);
    assert.equal(receipt.thread_id, "thread_lulu_zhiwei_hello");
  });

  it("keeps every field it may have, also unknown ones", async () => {
    await using core = await coreOnMemory();
    await core.messages.send(core.operator, golden("message.json"));
    const signed = golden("signed-message.json");
    const { receipt } = await core.messages.send(core.operator, signed);
    assert.deepEqual(await core.message(receipt.message_id), signed);
  });

  it("means the same when it is written as it was kept", () => {
    const { task_id: _, ...kept } = golden("message-stored.json");
    const written = parseMessageDraft(golden("message.json"));
    const again = parseMessageDraft(kept);
    assert.deepEqual(again, written);
    assert.equal(contentDigest(again), contentDigest(written));
  });

  it("needs only to whom and what", () => {
    const draft = parseMessageDraft(MESSAGE);
    assert.deepEqual(
      [draft.kind, draft.subject, draft.body, draft.duplicateSafety, draft.idempotencyKey, draft.id],
      ["note", "知微你好", "知微你好", "unsafe", undefined, undefined],
    );
  });
});

describe("a time with the offset of another zone", () => {
  const abroad = { created_at: "2026-05-08T16:30:00.123456+08:00", expires_at: "2027-05-08T00:30:00-08:00" };

  it("is kept in UTC", () => {
    const { given, expiresAtMs } = parseMessageDraft({ ...MESSAGE, ...abroad });
    assert.deepEqual(
      [given.created_at, given.expires_at],
      ["2026-05-08T08:30:00.123Z", "2027-05-08T08:30:00.000Z"],
    );
    assert.equal(expiresAtMs, Date.parse(abroad.expires_at));
  });

  it("stays as it is where it was signed, and so does one in UTC", () => {
    const signed = { ...MESSAGE, ...abroad, id: "m1", thread_id: "t1", signature: "abc" };
    assert.deepEqual(parseMessageDraft(signed).given, signed);
    const inUtc = { ...MESSAGE, created_at: "2026-05-08T08:30:00Z", expires_at: "2027-05-08T08:30:00.1234Z" };
    assert.deepEqual(parseMessageDraft(inUtc).given, inUtc);
  });

  it("may be that of the last hour before the year 10000", () => {
    const late = { ...MESSAGE, expires_at: "9999-12-31T23:59:59-01:00" };
    assert.equal(parseMessageDraft(late).expiresAtMs, Date.parse(late.expires_at));
  });
});

describe("null", () => {
  const nullable = [
    "id",
    "created_at",
    "reply_to",
    "thread_id",
    "task_id",
    "parent",
    "deadline_ms",
    "idempotency_key",
    "idempotency",
    "signature",
    "key_id",
    "nonce",
    "signed_at",
    "expires_at",
    "traceparent",
    "tracestate",
    "lease_id",
  ];
  for (const member of nullable) {
    it(`means that ${member} is absent`, () => {
      const draft = parseMessageDraft({ ...MESSAGE, [member]: null });
      assert.deepEqual(draft, parseMessageDraft(MESSAGE));
    });
  }

  it("means that an unknown member is absent too", () => {
    assert.ok(!("x_note" in parseMessageDraft({ ...MESSAGE, x_note: null }).given));
  });
});

describe("the body of a message", () => {
  it("may come as parts instead, whose text it then is", () => {
    const parts = [{ kind: "text", text: "甲" }, { kind: "data", data: {} }, { text: "乙" }];
    assert.equal(parseMessageDraft({ to: "a", parts }).body, "甲\n乙");
    assert.equal(parseMessageDraft({ to: "a", parts: [{ data: {} }] }).body, "");
  });

  it("must be there, in one form or the other", async () => {
    await refused(() => parseMessageDraft({ to: "a" }), "invalid_argument", /body or parts is missing/);
    await refused(() => parseMessageDraft({ to: "a", body: "" }), "invalid_argument", /body or parts/);
    assert.equal(parseMessageDraft({ to: "a", type: "heartbeat" }).body, "");
  });

  it("gives the subject its first line, shortened where people see an end", () => {
    const subjectOf = (body: string): string => parseMessageDraft({ to: "a", body }).subject;
    assert.equal(subjectOf("\n  第一行  \n第二行"), "第一行");
    assert.equal(subjectOf("x".repeat(80)), "x".repeat(80));
    assert.equal(subjectOf("x".repeat(81)), `${"x".repeat(77)}...`);
    assert.equal(subjectOf("🦊".repeat(600)), `${"🦊".repeat(77)}...`);
    assert.equal(subjectOf("   \n"), "(no subject)");
    assert.equal(parseMessageDraft({ to: "a", body: "x", subject: "" }).subject, "");
  });
});

describe("the state of a task", () => {
  for (const type of ["note", "request", "alert", "handoff", "memory", "heartbeat"] as const) {
    it(`is nothing that a ${type} says`, async () => {
      const message = { to: "知微", type, body: "好了", task_state: "completed" };
      await refused(() => parseMessageDraft(message), "invalid_argument", /^task_state: .*send a status/);
    });
  }

  it("is said by a status, and may stand in a reply", () => {
    for (const type of ["status", "reply"] as const) {
      parseMessageDraft({ to: "知微", type, body: "好了", task_state: "completed" });
    }
  });
});

describe("attachments", () => {
  it("are refused in any form, and the sentence says where to put them", async () => {
    for (const attachments of [["a.txt"], [{}], "a.txt", { name: "a" }, 1, true]) {
      await refused(
        () => parseMessageDraft({ ...MESSAGE, attachments }),
        "invalid_argument",
        /^attachments: .*parts or body/,
      );
    }
  });

  it("may be there when they are empty", () => {
    for (const attachments of [[], null, "", false]) parseMessageDraft({ ...MESSAGE, attachments });
  });
});

describe("the idempotency of a message", () => {
  it("is unsafe without a word, and in the short form", () => {
    assert.equal(parseMessageDraft({ ...MESSAGE, idempotency_key: "k" }).duplicateSafety, "unsafe");
    assert.equal(sendKeyOf(parseMessageDraft({ ...MESSAGE, idempotency_key: "k" })), "key:k");
  });

  it("says in the long form what a second delivery would do", () => {
    for (const duplicate_safety of ["unsafe", "idempotent"]) {
      const draft = parseMessageDraft({ ...MESSAGE, idempotency: { duplicate_safety, key: "k" } });
      assert.deepEqual([draft.duplicateSafety, draft.idempotencyKey], [duplicate_safety, "k"]);
    }
  });

  it("may come in both forms when they agree, and only then", async () => {
    const idempotency = { duplicate_safety: "idempotent", key: "k" };
    parseMessageDraft({ ...MESSAGE, idempotency, idempotency_key: "k" });
    await refused(
      () => parseMessageDraft({ ...MESSAGE, idempotency, idempotency_key: "other" }),
      "invalid_argument",
      /"k".*"other" differ/,
    );
  });

  it("needs a key that is not blank, also for unsafe work", async () => {
    for (const key of ["", " ", "\t\n"]) {
      await refused(() => parseMessageDraft({ ...MESSAGE, idempotency_key: key }), "invalid_argument");
      const idempotency = { duplicate_safety: "unsafe", key };
      await refused(() => parseMessageDraft({ ...MESSAGE, idempotency }), "invalid_argument");
    }
    const idempotency = { duplicate_safety: "idempotent" };
    await refused(() => parseMessageDraft({ ...MESSAGE, idempotency }), "invalid_argument");
    const long = "k".repeat(LIMITS.idempotencyKeyCharsMax + 1);
    await refused(() => parseMessageDraft({ ...MESSAGE, idempotency_key: long }), "too_large");
  });

  it("is known by the id its sender chose when there is no key", () => {
    assert.equal(sendKeyOf(parseMessageDraft({ ...MESSAGE, id: "m7" })), "id:m7");
    assert.equal(sendKeyOf(parseMessageDraft({ ...MESSAGE, idempotency_key: "id:m7" })), "key:id:m7");
    assert.equal(sendKeyOf(parseMessageDraft(MESSAGE)), undefined);
  });
});

describe("a message that cannot be read", () => {
  const wrong: readonly [what: string, message: unknown, code: "invalid_argument" | "too_large"][] = [
    ["nothing", undefined, "invalid_argument"],
    ["a text", "hello", "invalid_argument"],
    ["a list", [MESSAGE], "invalid_argument"],
    ["no recipient", { body: "x" }, "invalid_argument"],
    ["a recipient that is a number", { ...MESSAGE, to: 7 }, "invalid_argument"],
    ["a recipient that climbs", { ...MESSAGE, to: "../etc" }, "invalid_argument"],
    ["an unknown kind", { ...MESSAGE, type: "shout" }, "invalid_argument"],
    ["an unknown urgency", { ...MESSAGE, urgency: "asap" }, "invalid_argument"],
    ["another version", { ...MESSAGE, version: "a2a.v2" }, "invalid_argument"],
    ["a body that is a number", { ...MESSAGE, body: 7 }, "invalid_argument"],
    ["a body with a lone surrogate", { ...MESSAGE, body: "\ud800" }, "invalid_argument"],
    ["an unknown member with a lone surrogate", { ...MESSAGE, x: ["\udfff"] }, "invalid_argument"],
    ["needs_reply in words", { ...MESSAGE, needs_reply: "yes" }, "invalid_argument"],
    ["no parts at all", { to: "a", parts: [] }, "invalid_argument"],
    ["parts that are texts", { to: "a", parts: ["x"] }, "invalid_argument"],
    ["too many parts", { to: "a", parts: Array.from({ length: 101 }, () => ({})) }, "too_large"],
    ["a long subject", { ...MESSAGE, subject: "x".repeat(501) }, "too_large"],
    ["an id with a slash", { ...MESSAGE, id: "a/b" }, "invalid_argument"],
    ["an empty id", { ...MESSAGE, id: "" }, "invalid_argument"],
    ["a long id", { ...MESSAGE, id: "x".repeat(201) }, "too_large"],
    ["a thread that climbs", { ...MESSAGE, thread_id: ".." }, "invalid_argument"],
    ["a date of 1969", { ...MESSAGE, created_at: "1969-12-31T23:59:59Z" }, "invalid_argument"],
    ["30 February", { ...MESSAGE, expires_at: "2027-02-30T00:00:00Z" }, "invalid_argument"],
    ["a date without a zone", { ...MESSAGE, created_at: "2026-05-08T08:30:00" }, "invalid_argument"],
    ["a deadline before 1970", { ...MESSAGE, deadline_ms: -1 }, "invalid_argument"],
    ["half a millisecond", { ...MESSAGE, deadline_ms: 1.5 }, "invalid_argument"],
    ["a state no task has", { ...MESSAGE, task_state: "done" }, "invalid_argument"],
    ["a decision that is none", { ...MESSAGE, decision: "maybe" }, "invalid_argument"],
  ];
  for (const [what, message, code] of wrong) {
    it(`is refused for ${what}`, async () => {
      await refused(() => parseMessageDraft(message), code);
    });
  }

  it("is refused when it is signed and lets the relay fill in what was not signed", async () => {
    await refused(
      () => parseMessageDraft({ ...MESSAGE, signature: "abc" }),
      "invalid_argument",
      /must bring id, created_at, thread_id/,
    );
    parseMessageDraft({
      ...MESSAGE,
      signature: "abc",
      id: "m1",
      created_at: "2026-05-08T08:30:00Z",
      thread_id: "t1",
    });
  });
});

describe("the digest of a message", () => {
  const digest = (message: Json): string => contentDigest(parseMessageDraft(message));

  it("does not depend on the order of members", () => {
    const one = { to: "a", body: "x", subject: "s", x: { b: 1, a: [{ d: 1, c: 2 }] } };
    const other = { x: { a: [{ c: 2, d: 1 }], b: 1 }, subject: "s", body: "x", to: "a" };
    assert.equal(digest(one), digest(other));
  });

  it("does not depend on what a retry may carry anew", () => {
    const anew = {
      id: "m9",
      created_at: "2026-05-08T08:30:00Z",
      status: "sent",
      key_id: "k",
      nonce: "n",
      signed_at: "2026-05-08T08:30:00Z",
      traceparent: "00-0-0-01",
      tracestate: "v=1",
    };
    assert.equal(digest({ ...MESSAGE, ...anew }), digest(MESSAGE));
    const signed = { ...MESSAGE, thread_id: "t1", id: "m9", created_at: "2026-05-08T08:30:00Z" };
    assert.equal(digest({ ...signed, signature: "abc" }), digest({ ...signed, signature: "def" }));
  });

  it("depends on everything else", () => {
    const changes: readonly Json[] = [
      { body: "知微" },
      { subject: "s" },
      { type: "alert" },
      { urgency: "high" },
      { needs_reply: true },
      { thread_id: "t" },
      { reply_to: "m" },
      { parts: [{ text: "知微你好" }] },
      { expires_at: "2027-01-01T00:00:00Z" },
      { deadline_ms: 5 },
      { x_unknown: 0 },
    ];
    const digests = [MESSAGE, ...changes.map((change) => ({ ...MESSAGE, ...change }))].map(digest);
    assert.equal(new Set(digests).size, digests.length);
  });
});
