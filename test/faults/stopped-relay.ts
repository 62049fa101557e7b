import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, startRelay } from "a2a-relay";
import { type ChildRelay, startChildRelay } from "../support/child-relay.ts";
import { registerBoth } from "./messages.ts";

type Damage = (paths: RelayFiles) => void | Promise<void>;

/** The files of a relay that is no longer running, to be damaged and started again, each time from a copy. */
export interface StoppedRelay extends AsyncDisposable {
  /** Damages a copy and starts a relay on it, in this process. */
  startAfter(damage: Damage): Promise<RelayHere>;
  /** The same in a process with a log. */
  startChildAfter(damage: Damage): Promise<ChildRelay>;
}

export interface RelayFiles {
  readonly database: string;
  readonly log: string;
}

/** A relay in this process, which starts many times faster than a child. */
export interface RelayHere extends AsyncDisposable {
  readonly url: string;
  readonly dataDirectory: string;
  stop(): Promise<void>;
}

export async function startRelayHere(dataDirectory: string): Promise<RelayHere> {
  const flags = { port: "0", data: dataDirectory, "log-level": "silent" };
  const relay = await startRelay(loadConfig({ flags, env: {}, dotenv: {} }));
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= Promise.resolve(relay[Symbol.asyncDispose]()));
  return { url: relay.url, dataDirectory, stop, [Symbol.asyncDispose]: stop };
}

/** Lets a relay do some work, then ends it by the signal. */
export async function stoppedRelay(
  signal: "SIGTERM" | "SIGKILL",
  work: (url: string) => Promise<void>,
): Promise<StoppedRelay> {
  const root = await mkdtemp(join(tmpdir(), "a2a-relay-faults-"));
  const original = join(root, "original");
  await using relay = await startChildRelay({ dataDirectory: original });
  await registerBoth(relay.url);
  await work(relay.url);
  await relay.kill(signal);
  let copies = 0;
  const damagedCopy = async (damage: Damage): Promise<string> => {
    copies += 1;
    const dataDirectory = join(root, `copy-${copies}`);
    await cp(original, dataDirectory, { recursive: true });
    const database = join(dataDirectory, "relay.sqlite");
    await damage({ database, log: `${database}-wal` });
    return dataDirectory;
  };
  return {
    startAfter: async (damage) => startRelayHere(await damagedCopy(damage)),
    startChildAfter: async (damage) => startChildRelay({ dataDirectory: await damagedCopy(damage) }),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}
