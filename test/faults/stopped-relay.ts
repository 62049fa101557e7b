import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChildRelay, startChildRelay } from "../support/child-relay.ts";
import { registerBoth } from "./messages.ts";

/** The files of a relay that is no longer running, to be damaged and started again, each time from a copy. */
export interface StoppedRelay extends AsyncDisposable {
  /** Damages a copy and starts a relay on it. */
  startAfter(damage: (paths: RelayFiles) => void | Promise<void>): Promise<ChildRelay>;
}

export interface RelayFiles {
  readonly database: string;
  readonly log: string;
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
  return {
    async startAfter(damage) {
      copies += 1;
      const dataDirectory = join(root, `copy-${copies}`);
      await cp(original, dataDirectory, { recursive: true });
      const database = join(dataDirectory, "relay.sqlite");
      await damage({ database, log: `${database}-wal` });
      return startChildRelay({ dataDirectory });
    },
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}
