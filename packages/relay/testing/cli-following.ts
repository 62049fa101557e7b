import { type CliRun, cliRun, type CliRunOptions } from "./cli-run.ts";

/** A command that runs until it ends or is interrupted. */
export interface FollowingRun {
  readonly ended: Promise<CliRun>;
  /** The match, once stdout has it; rejects if the command ends without it. */
  prints(what: RegExp): Promise<RegExpExecArray>;
  /** The same for stderr. */
  notes(what: RegExp): Promise<RegExpExecArray>;
  /** Ends it as Ctrl-C does. */
  interrupt(): Promise<CliRun>;
}

/** A command that does not end is interrupted, so that its test fails. */
const RUN_MS_MAX = 30_000;

export function startCli(argv: readonly string[], options: CliRunOptions = {}): FollowingRun {
  const ending = new AbortController();
  const stdout = new Growing();
  const stderr = new Growing();
  const ended = cliRun(argv, {
    ...options,
    signal: AbortSignal.any([ending.signal, AbortSignal.timeout(RUN_MS_MAX)]),
    onStdout: (text) => stdout.become(text),
    onStderr: (text) => stderr.become(text),
  });
  return {
    ended,
    prints: (what) => stdout.holds(what, ended),
    notes: (what) => stderr.holds(what, ended),
    interrupt: () => {
      ending.abort();
      return ended;
    },
  };
}

class Growing {
  #text = "";
  #wake = (): void => {};

  become(text: string): void {
    this.#text = text;
    this.#wake();
  }

  async holds(what: RegExp, ended: Promise<CliRun>): Promise<RegExpExecArray> {
    let over: CliRun | undefined;
    const end = ended.then((run) => (over = run));
    for (;;) {
      const found = what.exec(this.#text);
      if (found !== null) return found;
      if (over !== undefined) throw new Error(`ended without ${what}: ${JSON.stringify(over)}`);
      await Promise.race([end, new Promise<void>((resolve) => (this.#wake = resolve))]);
    }
  }
}
