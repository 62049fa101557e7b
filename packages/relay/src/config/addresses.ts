import { isIP, BlockList } from "node:net";
import type { Complain } from "./setting.ts";

const PREFIX_MAX = { 4: 32, 6: 128 } as const;

/** CIDRs separated by commas. An address without a prefix means itself alone. */
export function parseCidrs(text: string, complain: Complain): readonly string[] {
  const items = text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
  return items.map(
    (item) =>
      completeCidr(item) ??
      complain(
        `CIDRs such as 10.0.0.0/8 or fd00::/8, separated by commas; ${JSON.stringify(item)} is none; names are not taken, only addresses`,
      ),
  );
}

function completeCidr(item: string): string | undefined {
  const [, address = "", prefix] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(item) ?? [];
  const family = isIP(address);
  if (family !== 4 && family !== 6) return undefined;
  const bits = prefix === undefined ? PREFIX_MAX[family] : Number(prefix);
  return bits <= PREFIX_MAX[family] ? `${address}/${bits}` : undefined;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Whether only programs of this machine can reach the host. Names other than localhost do not count. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(bare);
  if (family === 0) return bare.toLowerCase() === "localhost";
  return LOOPBACK.check(bare, family === 4 ? "ipv4" : "ipv6");
}

export function parseHost(text: string, complain: Complain): string {
  const bare = text.replace(/^\[(.*)\]$/, "$1");
  if (isIP(bare) !== 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(bare)) return bare;
  return complain("an IP address or a host name, without a scheme or a port, such as 127.0.0.1");
}

export function parsePublicUrl(text: string, complain: Complain): string {
  const url = URL.parse(text);
  const plain =
    url !== null &&
    (url.protocol === "https:" || url.protocol === "http:") &&
    `${url.username}${url.password}${url.search}${url.hash}` === "";
  if (!plain)
    return complain(
      "an http or https URL without user, query and fragment, such as https://relay.example.org",
    );
  return url.href.replace(/\/+$/, "");
}

export function parseOrigins(text: string, complain: Complain): readonly string[] {
  const origins = text
    .split(",")
    .map((origin) => origin.trim())
    .filter((origin) => origin !== "");
  const bad = origins.find((origin) => {
    const url = URL.parse(origin);
    return url === null || !url.protocol.startsWith("http") || url.origin !== origin.replace(/\/$/, "");
  });
  if (bad !== undefined) {
    return complain(
      `origins such as https://app.example.org, separated by commas; ${JSON.stringify(bad)} is none, and "*" would let every web page in`,
    );
  }
  return origins.map((origin) => origin.replace(/\/$/, ""));
}
