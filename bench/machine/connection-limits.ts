import { readFileSync } from "node:fs";

/** What keeps a process from holding any number of connections to one port. */
export interface ConnectionLimits {
  /** Files and sockets that a process may have open; servers inherit it. */
  readonly openFilesMax: number;
  /** Ports that connections may come from, for each address of this machine. */
  readonly portsOfAddress: number;
  /** Addresses of this machine that connections may come from. */
  readonly addressesMax: number;
}

export interface ConnectionPlan {
  readonly count: number;
  /** Source addresses, used in rotation; empty when one is enough and the system chooses it. */
  readonly localAddresses: readonly string[];
}

/** For the database, its log, standard streams, and other requests. */
const OTHER_FILES = 500;
/** Of each address: a port that was just used is not free again at once. */
const PORT_SHARE = 0.5;
/** Where the system does not tell: the range that is set aside for this purpose everywhere. */
const PORTS_ASSIGNED = 65_535 - 49_152 + 1;
/** On Linux every address of 127.0.0.0/8 is this machine; so many are more than enough. */
const LINUX_ADDRESSES = 250;

/** As many connections as wanted, or as the machine allows. */
export function planConnections(wanted: number, limits: ConnectionLimits): ConnectionPlan {
  const ofAddress = Math.floor(limits.portsOfAddress * PORT_SHARE);
  const count = Math.min(wanted, limits.openFilesMax - OTHER_FILES, ofAddress * limits.addressesMax);
  if (count < 1) throw new Error(`only ${limits.openFilesMax} files may be open: raise it with ulimit -n`);
  const addresses = count <= ofAddress ? 0 : Math.ceil(count / ofAddress);
  return {
    count,
    localAddresses: Array.from({ length: addresses }, (_, index) => `127.0.0.${index + 1}`),
  };
}

export function readConnectionLimits(): ConnectionLimits {
  const isLinux = process.platform === "linux";
  return {
    openFilesMax: openFilesMax(),
    portsOfAddress: isLinux ? linuxPorts() : PORTS_ASSIGNED,
    addressesMax: isLinux ? LINUX_ADDRESSES : 1,
  };
}

/** Node has raised it as far as it may by the time it runs us. Windows knows no such limit. */
function openFilesMax(): number {
  const { userLimits } = process.report.getReport() as {
    readonly userLimits?: { readonly open_files?: { readonly soft: number | "unlimited" } };
  };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY;
}

function linuxPorts(): number {
  const range = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8");
  const [first = Number.NaN, last = Number.NaN] = range.trim().split(/\s+/).map(Number);
  return last - first + 1;
}
