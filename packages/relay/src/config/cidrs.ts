import { isIP } from "node:net";
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
