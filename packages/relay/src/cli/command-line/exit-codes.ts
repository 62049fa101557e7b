/** What the exit code of every command means; `docs/reference/cli.md` tells the same. */
export const EXIT = {
  ok: 0,
  /** The relay said no, or something did not work, an A2A task included. */
  failure: 1,
  /** The command line itself is wrong; nothing was asked of the relay. */
  usage: 2,
  /** `wait` saw no mail in time. */
  timedOut: 3,
  /** No relay, or no A2A agent, answered at the address. */
  unreachable: 4,
  /** Ended by a signal, such as Ctrl-C. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
