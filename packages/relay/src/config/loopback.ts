import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Whether only programs of this machine can reach the host. A name other than localhost is not believed. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const family = isIP(bare);
  if (family === 0) return bare.toLowerCase() === "localhost";
  return LOOPBACK.check(bare, family === 4 ? "ipv4" : "ipv6");
}
