import { LIMITS } from "@a2a-relay/protocol";
import type { CommandContext } from "../../command-line/command-context.ts";
import { EXIT, type ExitCode } from "../../command-line/exit-codes.ts";
import { reportItems } from "./item-results.ts";
import { createKeepTrying, type KeepTrying } from "../../following/keep-trying.ts";

/** Acknowledges one message after the other, but in one request all that came up while the one before was under way. */
export class GroupedAcks {
  readonly #context: CommandContext;
  readonly #agent: string;
  readonly #keepTrying: KeepTrying;
  readonly #failing = new AbortController();
  #waiting: string[] = [];
  #running: Promise<void> | undefined;
  #code: ExitCode = EXIT.ok;

  constructor(context: CommandContext, agent: string) {
    this.#context = context;
    this.#agent = agent;
    this.#keepTrying = createKeepTrying(context);
  }

  /** Aborted with the reason when the relay does not take acknowledgements. */
  get failed(): AbortSignal {
    return this.#failing.signal;
  }

  add(messageId: string): void {
    this.#waiting.push(messageId);
    this.#running ??= this.#run();
  }

  /** Resolves when all are acknowledged: how it went with the last ones. */
  async settled(): Promise<ExitCode> {
    await this.#running;
    this.failed.throwIfAborted();
    return this.#code;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { client, output, signal } = this.#context;
    try {
      while (this.#waiting.length > 0) {
        const message_ids = this.#waiting.splice(0, LIMITS.ackMax);
        const ack = (): ReturnType<typeof client.ack> => client.ack(this.#agent, { message_ids }, { signal });
        const { results } = await this.#keepTrying(ack);
        this.#code = await reportItems(output, "acknowledged", results);
      }
    } catch (reason) {
      this.#failing.abort(reason);
    } finally {
      this.#running = undefined;
    }
  }
}
