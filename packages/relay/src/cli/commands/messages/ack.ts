import type { AckRequest } from "@a2a-relay/protocol";
import { InvalidArgumentError } from "commander";
import type { CommandLine } from "../../command-line/command-line.ts";
import { reportItems } from "./item-results.ts";

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
