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
    .command("ack <agent> <message-id...>", "Acknowledge mail: it is settled and not returned again.", [
      "a2a-relay ack zhiwei@known-blocks1 01981c5e-0000-7000-8000-000000000000",
    ])
    .option("--lease-id <id>", "the lease of the message; leased mail is settled only with it")
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
    throw new InvalidArgumentError("--lease-id belongs to one message; acknowledge leased mail one by one.");
  }
  return { leases: [{ message_id: id, lease_id: leaseId }] };
}

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

/** Tells beside the answer how many of a list went well and why the others did not. */
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
