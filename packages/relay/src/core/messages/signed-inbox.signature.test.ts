import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SignedMessage } from "@a2a-relay/protocol";
import fc from "fast-check";
import { newSigningSecret, readSigningSecret } from "../keys/key-maker.ts";
import { isSignedWith, signatureOf } from "./signed-inbox.ts";

/** The bytes 0 to 31. */
const SECRET_TEXT = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SECRET = readSigningSecret(SECRET_TEXT);

/** Signed once by a program in Python, with `sort_keys=True` and `ensure_ascii=False`. */
const MESSAGE: SignedMessage = {
  version: "a2a.v1",
  id: "msg_1",
  from: "lulu@kamac",
  to: "zhiwei@known-blocks1",
  type: "request",
  subject: "查一下磁盘",
  body: '剩 3%。\n"引号" \\ \t\u0007 😀',
  created_at: "2026-05-08T12:00:00Z",
  thread_id: "线一",
  deadline_ms: 4_000_000_000_000,
  x_more: { é: [1, -0.5, 1e21, true, null, { b: [], a: {} }], z: "", Z: 0 },
  key_id: "key_1",
  nonce: "n-1",
  signed_at: "2026-05-08T12:00:00Z",
  signature: "v1,0T5F7Bd3c3oGPVEiG4HmbkjNfv8yh/UHKJjABYfw8So=",
} as SignedMessage;

describe("a signing secret", () => {
  it("is read as it was written", () => {
    const bytes = Uint8Array.from({ length: 32 }, (_, index) => index);
    assert.equal(
      newSigningSecret((target) => target.set(bytes)),
      SECRET_TEXT,
    );
    assert.deepEqual([...SECRET], [...bytes]);
  });
});

describe("the signature of a message", () => {
  it("is the one that another program makes of the same JSON", () => {
    assert.equal(signatureOf(MESSAGE, SECRET), MESSAGE.signature);
    assert.ok(isSignedWith(MESSAGE, SECRET));
  });

  it("does not depend on the order of members, at any depth", () => {
    const { x_more: _, ...others } = MESSAGE as SignedMessage & { readonly x_more: unknown };
    const turned = Object.fromEntries(Object.entries(others).toReversed()) as SignedMessage;
    const x_more = { Z: 0, z: "", é: [1, -0.5, 1e21, true, null, { a: {}, b: [] }] };
    assert.ok(isSignedWith({ ...turned, x_more } as SignedMessage, SECRET));
  });

  for (const member of Object.keys(MESSAGE).filter((each) => each !== "signature")) {
    it(`is no more right when ${member} is changed, set to null or left out`, () => {
      const { [member as keyof SignedMessage]: value, ...rest } = MESSAGE;
      const other = typeof value === "string" ? `${value} ` : 7;
      assert.ok(!isSignedWith({ ...MESSAGE, [member]: other }, SECRET));
      assert.ok(!isSignedWith({ ...MESSAGE, [member]: null }, SECRET));
      assert.ok(!isSignedWith(rest as SignedMessage, SECRET));
    });
  }

  const changes: readonly [what: string, x_more: unknown][] = [
    ["an item moved", { é: [-0.5, 1, 1e21, true, null, { b: [], a: {} }], z: "", Z: 0 }],
    ["a number as text", { é: ["1", -0.5, 1e21, true, null, { b: [], a: {} }], z: "", Z: 0 }],
    ["a list as an object", { é: [1, -0.5, 1e21, true, null, { b: {}, a: {} }], z: "", Z: 0 }],
    ["a name in other case", { É: [1, -0.5, 1e21, true, null, { b: [], a: {} }], z: "", Z: 0 }],
    [
      "a name in another normal form",
      { "e\u0301": [1, -0.5, 1e21, true, null, { b: [], a: {} }], z: "", Z: 0 },
    ],
    ["one member more", { é: [1, -0.5, 1e21, true, null, { b: [], a: {}, c: 0 }], z: "", Z: 0 }],
  ];
  for (const [what, x_more] of changes) {
    it(`covers unknown members: ${what}`, () => {
      assert.ok(!isSignedWith({ ...MESSAGE, x_more } as SignedMessage, SECRET));
    });
  }

  it("covers members that are added", () => {
    for (const added of ["x_new", "urgency", "__proto__", "constructor"]) {
      const message = JSON.parse(`{"${added}":"x",${JSON.stringify(MESSAGE).slice(1)}`) as SignedMessage;
      assert.ok(!isSignedWith(message, SECRET), added);
    }
  });

  it("may be one of several", () => {
    const others = ["v1,AAAA", "v2,whatever", `v1,${"A".repeat(43)}=`, ""];
    for (const signature of [
      [...others, MESSAGE.signature].join(" "),
      [MESSAGE.signature, ...others].join(" "),
      `  ${MESSAGE.signature}`,
    ]) {
      assert.ok(isSignedWith({ ...MESSAGE, signature }, SECRET), signature);
    }
    assert.ok(!isSignedWith({ ...MESSAGE, signature: others.join(" ") }, SECRET));
  });

  const right = MESSAGE.signature;
  const wrong: readonly string[] = [
    "",
    "v1,",
    right.slice(3),
    right.replace("v1,", "v2,"),
    right.replace("v1,", "V1,"),
    right.replace("v1,", "v1"),
    right.replace("=", ""),
    `${right}=`,
    right.replace(",", ", "),
    right.toLowerCase(),
    Buffer.from(right.slice(3), "base64").toString("hex"),
    "知".repeat(47),
  ];
  for (const signature of wrong) {
    it(`is not ${JSON.stringify(signature)}`, () => {
      assert.ok(!isSignedWith({ ...MESSAGE, signature }, SECRET));
    });
  }

  it("is right for its own secret alone, whatever the message", () => {
    const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), bytes, bytes, (members, mine, yours) => {
        const message = { ...members, signature: signatureOf(members, mine) } as unknown as SignedMessage;
        // As it is after it came over a wire.
        const arrived = JSON.parse(JSON.stringify(message)) as SignedMessage;
        assert.ok(isSignedWith(arrived, mine));
        if (Buffer.compare(mine, yours) !== 0) assert.ok(!isSignedWith(arrived, yours));
      }),
    );
  });
});
