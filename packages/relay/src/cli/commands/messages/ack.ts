import { type AckRequest, LIMITS, type ItemResult } from "@a2a-relay/protocol";
import { InvalidArgumentError } from "commander";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT, type ExitCode } from "../../command-line/exit.ts";
import { createKeepTrying, type KeepTrying } from "../../following/keep-trying.ts";
import type { Output } from "../../terminal/output.ts";
import { visibleLine } from "../../terminal/text.ts";

interface AckOptions {
  readonly leaseId?: string;
}

export function addAck(line: CommandLine): void {
  line
    .command(
      "ack <agent> <message-id...>",
      "Acknowledge messages: they are settled and not returned again.",
      ["a2a-relay ack zhiwei@known-blocks1 01981c5e-0000-7000-8000-000000000000"],
    )
    .option("--lease-id <id>", "the lease of the message; a leased message is settled only with it")
    .action(
      line.run<AckOptions, [string, readonly string[]]>(async (context, options, agent, ids) => {
        const { client, output, signal } = context;
        const request = requestOf(ids, options.leaseId);
        const answer = await client.ack(agent, request, { signal });
        if (output.json) await output.show(answer, () => []);
        return reportItems(output, "acknowledged", answer.results);
      }),
    );
}

function requestOf(ids: readonly string[], leaseId: string | undefined): AckRequest {
  if (leaseId === undefined) return { message_ids: [...ids] };
  const [id] = ids;
  if (ids.length !== 1 || id === undefined) {
    throw new InvalidArgumentError(
      "--lease-id belongs to one message; acknowledge leased messages one by one.",
    );
  }
  return { leases: [{ message_id: id, lease_id: leaseId }] };
}

/** Acknowledges messages in the background: those added during a request go together into the next one. */
export class AckBatcher {
  readonly #context: CommandContext;
  readonly #agent: string;
  readonly #keepTrying: KeepTrying;
  readonly #failing = new AbortController();
  #pending: string[] = [];
  #running: Promise<void> | undefined;
  #code: ExitCode = EXIT.ok;

  constructor(context: CommandContext, agent: string) {
    this.#context = context;
    this.#agent = agent;
    this.#keepTrying = createKeepTrying(context);
  }

  /** Aborted with the reason when the relay refuses acknowledgements. */
  get failed(): AbortSignal {
    return this.#failing.signal;
  }

  add(messageId: string): void {
    this.#pending.push(messageId);
    this.#running ??= this.#run();
  }

  /** Resolves when all are acknowledged, with the exit code of the last request. */
  async settled(): Promise<ExitCode> {
    await this.#running;
    this.failed.throwIfAborted();
    return this.#code;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { client, output, signal } = this.#context;
    try {
      while (this.#pending.length > 0) {
        const message_ids = this.#pending.splice(0, LIMITS.ackMax);
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

/** Notes on stderr how many items succeeded and why the others failed. */
export async function reportItems(
  output: Output,
  done: string,
  results: readonly ItemResult[],
): Promise<ExitCode> {
  const failures = results.filter((result) => !result.ok);
  await output.note(`${done} ${results.length - failures.length} of ${results.length}`);
  for (const { message_id: id, error } of failures) {
    await output.error(visibleLine(`${id}: ${error.message}`));
  }
  return failures.length === 0 ? EXIT.ok : EXIT.failure;
}
