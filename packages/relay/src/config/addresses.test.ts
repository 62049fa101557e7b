import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { EgressPolicy } from "../core/rules/egress-policy.ts";
import { parseCidrs, isLoopbackHost } from "./addresses.ts";

const read = (text: string): readonly string[] =>
  parseCidrs(text, (expected) => {
    throw new Error(`expected ${expected}`);
  });

describe("parseCidrs", () => {
  it("takes networks and single addresses of both families, separated by commas", () => {
    assert.deepEqual(read("10.0.0.0/8, 192.168.1.7 ,fd00::/8,::1, ::ffff:10.0.0.0/104,"), [
      "10.0.0.0/8",
      "192.168.1.7/32",
      "fd00::/8",
      "::1/128",
      "::ffff:10.0.0.0/104",
    ]);
    assert.deepEqual(read(" , "), []);
  });

  for (const item of [
    "localhost",
    "10.0.0.0/33",
    "fd00::/129",
    "10.0.0.0/",
    "/8",
    "10/8",
    "010.0.0.0/8",
    "0x0a.0.0.0/8",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "10.0.0.0/+8",
    "10.0.0.0/255.0.0.0",
    "10.0.0.*",
    "10.0.0.0-10.0.0.9",
    "fe80::1%eth0/64",
    "[::1]",
    "http://10.0.0.1",
    "10.0.0.0/8 192.168.0.0/16",
    "*",
    "知微",
  ]) {
    it(`refuses ${item} and says which of the list it was`, () => {
      assert.throws(
        () => read(`192.168.0.0/16,${item}`),
        (reason: Error) =>
          reason.message.startsWith("expected CIDRs") && reason.message.includes(`"${item}" is none`),
      );
    });
  }

  it("gives nothing that the egress policy cannot use", () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(address, fc.option(fc.nat(130)), (bare, prefix) => {
        const text = prefix === null ? bare : `${bare}/${prefix}`;
        if (prefix !== null && prefix > (bare.includes(":") ? 128 : 32)) {
          assert.throws(() => read(text));
        } else {
          // Some addresses of IPv6 lead to one of IPv4, which must be fit to call too.
          const others = bare.includes(":") ? ["0.0.0.0/0"] : [];
          assert.equal(new EgressPolicy([...read(text), ...others]).allows(bare), true);
        }
      }),
    );
  });
});

describe("isLoopbackHost", () => {
  for (const host of [
    "127.0.0.1",
    "127.8.9.1",
    "::1",
    "[::1]",
    "0:0:0:0:0:0:0:1",
    "::ffff:127.0.0.1",
    "LocalHost",
  ]) {
    it(`believes ${host}`, () => assert.equal(isLoopbackHost(host), true));
  }
  for (const host of [
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "128.0.0.1",
    "localhost.example.org",
    "127.0.0.1.example.org",
  ]) {
    it(`does not believe ${host}`, () => assert.equal(isLoopbackHost(host), false));
  }
});
