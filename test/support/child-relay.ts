import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { childEnv } from "./child-env.ts";

const LAUNCHER = join(import.meta.dirname, "..", "..", "packages", "relay", "bin", "a2a-relay.js");
const START_MS_MAX = 30_000;
/** The relay promises 10 s; after this it is killed. */
const STOP_MS_MAX = 20_000;

export interface ChildRelayOptions {
  /** Kept when given. Without it the relay gets a new directory, removed with it. */
  readonly dataDirectory?: string;
  /** Added to an environment that holds nothing of the caller's but PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further arguments of `a2a-relay serve`. */
  readonly args?: readonly string[];
  /** The user who runs it; only root can choose one. */
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Kills it with SIGKILL when aborted, also while it starts. */
  readonly signal?: AbortSignal;
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ChildRelay extends AsyncDisposable {
  /** Where it listens, e.g. http://127.0.0.1:41234. */
  readonly url: string;
  readonly pid: number;
  readonly dataDirectory: string;
  readonly exited: Promise<ChildExit>;
  stderr(): string;
  /** Waits until it has said something matching on stderr. */
  said(words: RegExp): Promise<void>;
  /** Sends the signal to this one process and waits for its end. */
  kill(signal: NodeJS.Signals): Promise<ChildExit>;
}

export interface ChildRun extends ChildExit {
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts the real launcher, as a user would, on a free port of loopback, and waits until it listens. */
export async function startChildRelay(options: ChildRelayOptions = {}): Promise<ChildRelay> {
  const child = await Child.spawn(options);
  try {
    const url = await child.listening();
    return Object.assign(child, { url });
  } catch (reason) {
    await child[Symbol.asyncDispose]();
    throw reason;
  }
}

/** Runs a relay that is expected to end by itself, such as one that refuses to start, or by `signal`. */
export async function runChildRelay(options: ChildRelayOptions = {}): Promise<ChildRun> {
  await using child = await Child.spawn(options);
  const exit = await child.ended(START_MS_MAX, "end");
  return { ...exit, stdout: child.stdout(), stderr: child.stderr() };
}

/** Those that still run; none may outlive the test that started it. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

class Child implements Omit<ChildRelay, "url"> {
  readonly dataDirectory: string;
  readonly exited: Promise<ChildExit>;
  readonly #process: ChildProcessByStdio<null, Readable, Readable>;
  readonly #home: string;
  #stdout = "";
  #stderr = "";

  private constructor(
    process: ChildProcessByStdio<null, Readable, Readable>,
    home: string,
    dataDirectory: string,
  ) {
    this.#process = process;
    this.#home = home;
    this.dataDirectory = dataDirectory;
    running.add(process);
    process.stdout.setEncoding("utf8").on("data", (text: string) => (this.#stdout += text));
    process.stderr.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    // `close` comes after the last word of both streams, `exit` may come before it.
    this.exited = once(process, "close").then((values) => {
      const [code, signal] = values as [number | null, NodeJS.Signals | null];
      running.delete(process);
      return { code, signal };
    });
  }

  static async spawn(options: ChildRelayOptions): Promise<Child> {
    const home = await mkdtemp(join(tmpdir(), "a2a-relay-child-"));
    // Another user may have to enter it.
    await chmod(home, 0o755);
    const dataDirectory = options.dataDirectory ?? join(home, "data");
    const words = ["serve", "--json", "--port", "0", "--data", dataDirectory, ...(options.args ?? [])];
    const child = spawn(process.execPath, [LAUNCHER, ...words], {
      cwd: home,
      env: childEnv({ HOME: home, ...options.env }),
      stdio: ["ignore", "pipe", "pipe"],
      ...options.user,
    });
    options.signal?.addEventListener("abort", () => child.kill("SIGKILL"), { once: true });
    return new Child(child, home, dataDirectory);
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined) throw new Error("the relay's process could not be started");
    return pid;
  }

  stdout(): string {
    return this.#stdout;
  }

  stderr(): string {
    return this.#stderr;
  }

  /** The address, from the first thing it says. */
  async listening(): Promise<string> {
    const address = /"url": "(http:[^"]+)"/;
    await this.#heard(this.#process.stdout, "listen", () => address.test(this.#stdout));
    return address.exec(this.#stdout)?.[1] ?? "";
  }

  async said(words: RegExp): Promise<void> {
    await this.#heard(this.#process.stderr, `say ${String(words)}`, () => words.test(this.#stderr));
  }

  async ended(msMax: number, what: string): Promise<ChildExit> {
    return this.#within(msMax, what, this.exited);
  }

  async kill(signal: NodeJS.Signals): Promise<ChildExit> {
    this.#process.kill(signal);
    return this.ended(STOP_MS_MAX, `end after ${signal}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.exited.catch(() => undefined);
    await rm(this.#home, { recursive: true, force: true });
  }

  async #heard(stream: Readable, what: string, isThere: () => boolean): Promise<void> {
    const heard = new Promise<void>((resolve) => {
      const check = (): void => {
        if (isThere()) resolve();
      };
      stream.on("data", check);
      check();
    });
    const ended = this.exited.then(({ code, signal }): void => {
      if (isThere()) return;
      throw new Error(`the relay ended (${signal ?? code}) and did not ${what}:\n${this.#stderr}`);
    });
    await this.#within(START_MS_MAX, what, Promise.race([heard, ended]));
  }

  async #within<Value>(msMax: number, what: string, promise: Promise<Value>): Promise<Value> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      late.reject(new Error(`the relay did not ${what} within ${msMax} ms:\n${this.#stderr}`));
    }, msMax);
    return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
  }
}
