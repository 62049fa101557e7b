import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { type Cores, onServerCore } from "../machine/cores.ts";

const START_MS_MAX = 60_000;
const STOP_MS_MAX = 60_000;

/** Whatever is still running when this process ends is ended with it. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** One contestant in its own process, on the servers' core. */
export class ServerProcess implements AsyncDisposable {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  readonly #child: ChildProcess;

  private constructor(name: string, port: number, child: ChildProcess) {
    this.name = name;
    this.port = port;
    this.pid = child.pid ?? 0;
    this.#child = child;
  }

  /** `args` are for Node. The program must print its address, on 127.0.0.1, once it listens. */
  static async start(
    name: string,
    args: readonly string[],
    settings: {
      readonly directory: string;
      readonly cores: Cores;
      readonly env?: Readonly<Record<string, string>>;
    },
  ): Promise<ServerProcess> {
    const [command = "", ...rest] = onServerCore(settings.cores, [process.execPath, ...args]);
    const child = spawn(command, rest, {
      // In the data directory and with a bare environment, so that no .env and no variable has a say.
      cwd: settings.directory,
      env: { PATH: process.env["PATH"], HOME: settings.directory, ...settings.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    running.add(child);
    child.once("exit", () => running.delete(child));
    return new ServerProcess(name, await portOf(name, child), child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    const late = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS_MAX);
    await exit;
    clearTimeout(late);
  }
}

async function portOf(name: string, child: ChildProcess): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const late = setTimeout(() => reject(new Error(`${name} did not start in time`)), START_MS_MAX);
  child.once("error", reject);
  // What a server says while it runs well is of no interest here.
  let complaint = "";
  child.stderr?.on("data", (chunk: Buffer) => (complaint = chunk.toString("utf8")));
  child.once("exit", (code) => reject(new Error(`${name} ended with exit code ${code}: ${complaint}`)));
  if (child.stdout !== null) {
    createInterface(child.stdout).on("line", (line) => {
      const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1];
      if (port !== undefined) resolve(Number(port));
    });
  }
  try {
    return await promise;
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    clearTimeout(late);
  }
}
