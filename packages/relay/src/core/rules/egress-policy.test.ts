import assert from "node:assert/strict";
import { BlockList } from "node:net";
import { describe, it } from "node:test";
import { LIMITS } from "@a2a-relay/protocol";
import fc from "fast-check";
import { HARMLESS_URLS, HOSTILE_ADDRESSES, HOSTILE_FORMS } from "../../../testing/hostile-urls.ts";
import { refused } from "../../../testing/refusal.ts";
import { EgressPolicy } from "./egress-policy.ts";

/** Special addresses of IANA's registries, and Azure's. */
const NOT_PUBLIC = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
] as const;

const notPublic = new BlockList();
for (const cidr of NOT_PUBLIC) notPublic.addSubnet(networkOf(cidr), prefixOf(cidr), "ipv4");

const strict = new EgressPolicy([]);

describe("a URL to call", () => {
  for (const { url, why } of HOSTILE_ADDRESSES) {
    it(`is refused: ${JSON.stringify(url)}, ${why}`, async () => {
      const { message } = await refused(() => strict.checkUrl(url, "callback_url"), "invalid_argument");
      assert.match(message, /^callback_url: ".*" is at an address .* A2A_RELAY_EGRESS_ALLOW/);
    });
  }

  for (const { url, why } of HOSTILE_FORMS) {
    it(`is refused: ${JSON.stringify(url)}, ${why}`, async () => {
      // Refused by its form, also when every address is allowed.
      for (const policy of [strict, new EgressPolicy(["0.0.0.0/0", "::/0"])]) {
        await refused(() => policy.checkUrl(url, "callback_url"), "invalid_argument", /^callback_url: /);
      }
    });
  }

  for (const url of HARMLESS_URLS) {
    it(`is accepted: ${url}`, () => {
      assert.equal(strict.checkUrl(url, "callback_url").href, new URL(url).href);
    });
  }

  it("has a length that is bounded", async () => {
    const start = "https://a.example/";
    const longest = start + "x".repeat(LIMITS.urlCharsMax - start.length);
    assert.equal(strict.checkUrl(longest, "url").href, longest);
    await refused(() => strict.checkUrl(`${longest}x`, "url"), "invalid_argument", /at most 2000 characters/);
  });

  it("may name localhost where loopback is allowed in one family", () => {
    for (const cidr of ["127.0.0.0/8", "::1/128"]) {
      const policy = new EgressPolicy([cidr]);
      assert.equal(policy.checkUrl("http://localhost:8080/", "url").port, "8080");
      assert.equal(policy.checkUrl("http://a.localhost./", "url").hostname, "a.localhost.");
    }
  });
});

describe("an address to call", () => {
  it("is any public one, and no other", () => {
    fc.assert(
      fc.property(anyIpv4(), (address) => {
        assert.equal(strict.allows(address), !notPublic.check(address));
        assert.equal(strict.allows(mapped(address)), strict.allows(address));
        assert.equal(strict.allows(`64:ff9b::${hex(address)}`), strict.allows(address));
      }),
      { numRuns: 1_000 },
    );
  });

  for (const cidr of NOT_PUBLIC) {
    it(`is not public from the first to the last of ${cidr}`, () => {
      const first = numberOf(networkOf(cidr));
      const last = first + 2 ** (32 - prefixOf(cidr)) - 1;
      assert.equal(strict.allows(dotted(first)), false);
      assert.equal(strict.allows(dotted(last)), false);
      for (const neighbour of [first - 1, last + 1]) {
        if (neighbour < 0 || neighbour >= 2 ** 32 || notPublic.check(dotted(neighbour))) continue;
        assert.equal(strict.allows(dotted(neighbour)), true, dotted(neighbour));
      }
    });
  }

  for (const address of [
    "",
    "localhost",
    "127.1",
    "8.8",
    "0x8.8.8.8",
    "010.8.8.8",
    "8.8.8.8/32",
    "[2606:4700::1]",
    "::g",
  ]) {
    it(`is not ${JSON.stringify(address)}, which is none or could be two`, () => {
      assert.equal(new EgressPolicy(["0.0.0.0/0", "::/0"]).allows(address), false);
    });
  }

  it("is judged without its zone", () => {
    assert.equal(strict.allows("fe80::1%eth0"), false);
    assert.equal(new EgressPolicy(["fe80::/10"]).allows("fe80::1%eth0"), true);
  });
});

describe("what an operator allows", () => {
  it("holds for the same addresses of IPv4 however they are written, and for no others", () => {
    const policy = new EgressPolicy(["127.0.0.0/8"]);
    for (const address of ["127.0.0.1", "127.255.255.255", "::ffff:127.0.0.1", "::ffff:7f00:1"]) {
      assert.equal(policy.allows(address), true, address);
    }
    for (const address of ["::1", "::127.0.0.1", "2002:7f00:1::", "10.0.0.1", "0.0.0.0"]) {
      assert.equal(policy.allows(address), false, address);
    }
    assert.equal(policy.checkUrl("http://2130706433:8080/", "url").hostname, "127.0.0.1");
  });

  it("may be written as mapped addresses too", () => {
    const policy = new EgressPolicy(["::ffff:10.0.0.0/104"]);
    assert.deepEqual(
      ["10.1.2.3", "::ffff:10.1.2.3", "11.0.0.1", "192.168.0.1"].map((each) => policy.allows(each)),
      [true, true, true, false],
    );
  });

  it("does not reach through IPv6 to addresses of IPv4 that it does not name", () => {
    const policy = new EgressPolicy(["::/0"]);
    assert.equal(policy.allows("fd00::1"), true);
    for (const address of [
      "::ffff:10.0.0.1",
      "::10.0.0.1",
      "64:ff9b::a00:1",
      "2002:a00:1::",
      "2001:0:a00:1::f7f7:f7f7",
      "2001:0:808:808::f5ff:fffe",
    ]) {
      assert.equal(policy.allows(address), false, address);
    }
  });

  it("counts the bits of a prefix that ends within a byte", () => {
    const policy = new EgressPolicy(["10.128.0.0/9", "fd00:8000::/17"]);
    assert.deepEqual(
      ["10.127.255.255", "10.128.0.0", "10.255.255.255", "fd00:7fff::1", "fd00:8000::1", "fd00:ffff::1"].map(
        (each) => policy.allows(each),
      ),
      [false, true, true, false, true, true],
    );
  });

  it("is a list of CIDRs and nothing else", async () => {
    for (const cidr of [
      "10.0.0.0",
      "10.0.0.0/33",
      "fd00::/129",
      "a.example/8",
      "fe80::1%eth0/64",
      "10.0.0.0/8 ",
    ]) {
      await refused(() => new EgressPolicy([cidr]), "invalid_argument", /is not a CIDR/);
    }
  });
});

describe("no spelling of a forbidden address", () => {
  it("passes as the host of a URL", async () => {
    await fc.assert(
      fc.asyncProperty(forbiddenIpv4(), spelling(), async (address, spell) => {
        const url = `http://${spell(address)}:8080/hook`;
        await refused(() => strict.checkUrl(url, "callback_url"), "invalid_argument");
      }),
      { numRuns: 2_000 },
    );
  });

  it("is missed where public ones are accepted: the spellings are good ones", () => {
    fc.assert(
      fc.property(spelling({ isCarried: false }), (spell) => {
        assert.ok(strict.checkUrl(`http://${spell("8.8.4.4")}:8080/hook`, "url"));
      }),
    );
  });
});

function anyIpv4(): fc.Arbitrary<string> {
  return fc.oneof(fc.nat(2 ** 32 - 1).map(dotted), forbiddenIpv4());
}

function forbiddenIpv4(): fc.Arbitrary<string> {
  return fc
    .constantFrom(...NOT_PUBLIC)
    .chain((cidr) =>
      fc.nat(2 ** (32 - prefixOf(cidr)) - 1).map((offset) => dotted(numberOf(networkOf(cidr)) + offset)),
    );
}

type Spell = (address: string) => string;

/** Spellings that a URL parser or an IPv6 network reads as the IPv4 address. */
function spelling({ isCarried = true } = {}): fc.Arbitrary<Spell> {
  const digits = fc.constantFrom<(value: number) => string>(
    String,
    (value) => `0x${value.toString(16)}`,
    (value) => `0X000${value.toString(16).toUpperCase()}`,
    (value) => `0${value.toString(8)}`,
    (value) => `0000${value.toString(8)}`,
  );
  const inParts = fc
    .tuple(fc.integer({ min: 1, max: 4 }), fc.array(digits, { minLength: 4, maxLength: 4 }))
    .map(
      ([count, writers]): Spell =>
        (address) =>
          partsOf(address, count)
            .map((part, index) => (writers[index] ?? String)(part))
            .join("."),
    );
  const disguise = fc.constantFrom<(text: string) => string>(
    (text) => text,
    (text) => `${text}.`,
    (text) => text.replaceAll(/\d/g, (digit) => `%3${digit}`),
    (text) => text.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    (text) => text.replaceAll(".", "。"),
    (text) => text.replaceAll(".", "%2E"),
  );
  const plain = fc.tuple(inParts, disguise).map(
    ([write, hide]): Spell =>
      (address) =>
        hide(write(address)),
  );
  const bracketed = fc.constantFrom<Spell>(
    (address) => `[::ffff:${address}]`,
    (address) => `[${mapped(address)}]`,
    (address) => `[0:0:0:0:0:FFFF:${hex(address).toUpperCase()}]`,
    (address) => `[64:ff9b::${address}]`,
  );
  const carried = fc.constantFrom<Spell>(
    (address) => `[::${address}]`,
    (address) => `[::ffff:0:${address}]`,
    (address) => `[2002:${hex(address)}::1]`,
    (address) => `[2001:0:${hex(address)}::]`,
    (address) => `[2606:4700::5efe:${hex(address)}]`,
  );
  return isCarried ? fc.oneof(plain, bracketed, carried) : fc.oneof(plain, bracketed);
}

/** The address as so many numbers; the last holds the rest. */
function partsOf(address: string, count: number): readonly number[] {
  const bytes = address.split(".").map(Number);
  const rest = bytes.slice(count - 1).reduce((sum, byte) => sum * 256 + byte, 0);
  return [...bytes.slice(0, count - 1), rest];
}

function mapped(address: string): string {
  return `::ffff:${hex(address)}`;
}

/** `7f00:1` of 127.0.0.1. */
function hex(address: string): string {
  const number = numberOf(address);
  return `${Math.floor(number / 65_536).toString(16)}:${(number % 65_536).toString(16)}`;
}

function numberOf(address: string): number {
  return address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);
}

function dotted(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
}

function networkOf(cidr: string): string {
  return cidr.slice(0, cidr.indexOf("/"));
}

function prefixOf(cidr: string): number {
  return Number(cidr.slice(cidr.indexOf("/") + 1));
}
