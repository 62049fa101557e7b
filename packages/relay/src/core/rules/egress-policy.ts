import { LIMITS, quote, RelayError } from "@a2a-relay/protocol";
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [network: Address, prefix: number];

/** What the operator can do about a refusal. */
export const HOW_TO_ALLOW =
  "the operator of the relay may allow it by its CIDR with A2A_RELAY_EGRESS_ALLOW, such as 10.0.0.0/8";

/** The form of every URL that the relay calls: no user, no fragment, nothing that two parsers read differently. */
const URL_SHAPE = /^https?:\/\/[^\s\p{Cc}\\/?#@]+(?:[/?][^\s\p{Cc}\\#]*)?$/iu;

/** Some resolvers read `127.0.0.1..` as an address; the URL parser reads it as a name. */
const EMPTY_LABEL = /^\.|\.\./;

/** The only part of IPv6 that IANA has assigned. */
const IPV6_ASSIGNED = readRange("2000::/3");
/** In networks without IPv4, names resolve to these addresses, which lead to IPv4. */
const NAT64 = readRange("64:ff9b::/96");
/** Azure serves its machines' metadata at a public address. */
const METADATA_AMONG_PUBLIC = readRange("168.63.129.16/32");

/** IPv6 ranges whose addresses lead to an IPv4 address, and at which of the eight parts it begins. */
const IPV4_CARRIERS: readonly { readonly range: Range; readonly at: number; readonly inverted?: boolean }[] =
  [
    { range: NAT64, at: 6 },
    { range: readRange("::ffff:0:0:0/96"), at: 6 },
    { range: readRange("2002::/16"), at: 1 },
    { range: readRange("2001::/32"), at: 2 },
    { range: readRange("2001::/32"), at: 6, inverted: true },
  ];

/**
 * Which addresses the relay may call: public ones, and those that the operator allows by CIDR. It resolves no names:
 * the connector resolves a name when it connects, and checks each address here.
 */
export class EgressPolicy {
  readonly #allowed: readonly Range[];

  /** CIDRs such as `10.0.0.0/8`. An IPv4 CIDR also covers its addresses written as IPv6. */
  constructor(cidrs: readonly string[]) {
    this.#allowed = cidrs.map(readRange);
  }

  /** Checks the URL's form and, where its host is an address, that address. Names are checked on connecting. */
  checkUrl(text: string, field: string): URL {
    const url = text.length <= LIMITS.urlCharsMax && URL_SHAPE.test(text) ? URL.parse(text) : null;
    if (url === null || EMPTY_LABEL.test(url.hostname)) {
      throw new RelayError(
        "invalid_argument",
        `${field}: ${quote(text)} is not an http or https URL of at most ${LIMITS.urlCharsMax} characters ` +
          "without a user, a fragment, backslashes, blanks and control characters",
      );
    }
    if (!this.#allowsHost(url.hostname)) {
      throw new RelayError(
        "invalid_argument",
        `${field}: ${quote(text)} is at an address that the relay does not call; ${HOW_TO_ALLOW}`,
      );
    }
    return url;
  }

  /** Whether the relay may connect to this address. False for text that is not one address. */
  allows(address: string): boolean {
    const parsed = readAddress(address);
    return (
      parsed !== undefined && meaningsOf(parsed).every((each) => isPublic(each) || this.#isAllowed(each))
    );
  }

  /** The URL parser has normalized addresses. */
  #allowsHost(hostname: string): boolean {
    if (hostname.startsWith("[")) return this.allows(hostname.slice(1, -1));
    if (readAddress(hostname) !== undefined) return this.allows(hostname);
    if (/(?:^|\.)localhost\.?$/.test(hostname)) return this.allows("127.0.0.1") || this.allows("::1");
    return true;
  }

  #isAllowed(address: Address): boolean {
    return this.#allowed.some((range) => isIn(address, range));
  }
}

/** The scheme, host and port of a URL; empty for text that is not a URL. Pushes and polls share quotas by it. */
export function originOf({ url }: { readonly url: string }): string {
  return URL.parse(url)?.origin ?? "";
}

/** The address, and the IPv4 addresses that it carries: the policy must allow all of them. */
function meaningsOf(address: Address): readonly Address[] {
  if (address.kind() === "ipv4") return [address];
  const { parts } = address as ipaddr.IPv6;
  // The operating system connects to the IPv4 address.
  if (isMapped(address)) return [embedded(parts, 6)];
  const carried = IPV4_CARRIERS.filter(({ range }) => isIn(address, range));
  return [
    address,
    ...carried.map(({ at, inverted }) =>
      embedded(inverted === true ? parts.map((part) => part ^ 0xffff) : parts, at),
    ),
    ...(isCompatible(parts) || isTunnelled(parts) ? [embedded(parts, 6)] : []),
  ];
}

function isMapped(address: Address): address is ipaddr.IPv6 {
  return address.kind() === "ipv6" && (address as ipaddr.IPv6).isIPv4MappedAddress();
}

/** `::a.b.c.d`, deprecated. The shortest ones, such as `::1`, are plain IPv6. */
function isCompatible(parts: readonly number[]): boolean {
  return parts.slice(0, 6).every((part) => part === 0) && parts[6] !== 0;
}

/** ISATAP: an interface identifier that leads to an IPv4 address, behind any prefix. */
function isTunnelled(parts: readonly number[]): boolean {
  return parts[5] === 0x5efe && (parts[4] === 0 || parts[4] === 0x200);
}

function embedded(parts: readonly number[], at: number): ipaddr.IPv4 {
  return new ipaddr.IPv4(parts.slice(at, at + 2).flatMap((part) => [part >> 8, part & 0xff]));
}

function isPublic(address: Address): boolean {
  if (isIn(address, NAT64)) return true;
  if (address.range() !== "unicast" || isIn(address, METADATA_AMONG_PUBLIC)) return false;
  return address.kind() === "ipv4" || isIn(address, IPV6_ASSIGNED);
}

function isIn(address: Address, [network, prefix]: Range): boolean {
  return address.kind() === network.kind() && address.match(network, prefix);
}

/** Ignores the zone of a link-local address. */
function readAddress(text: string): Address | undefined {
  const bare = text.replace(/%.*$/s, "");
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return ipaddr.IPv4.parse(bare);
  // The URL parser reads and normalizes it, so that all callers agree on what is an address.
  const spelled = /^[\da-f:.]+$/i.test(bare)
    ? URL.parse(`http://[${bare}]/`)?.hostname.slice(1, -1)
    : undefined;
  return spelled === undefined ? undefined : ipaddr.IPv6.parse(spelled);
}

function readRange(cidr: string): Range {
  const [, address = "", digits = ""] = /^([^/]+)\/(\d{1,3})$/.exec(cidr) ?? [];
  const network = address.includes("%") ? undefined : readAddress(address);
  const prefix = Number(digits);
  if (network === undefined || prefix > network.toByteArray().length * 8) {
    throw new RelayError("invalid_argument", `${quote(cidr)} is not a CIDR, such as 10.0.0.0/8 or fd00::/8`);
  }
  if (isMapped(network) && prefix >= 96) return [network.toIPv4Address(), prefix - 96];
  return [network, prefix];
}
