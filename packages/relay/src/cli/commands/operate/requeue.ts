import { InvalidArgumentError, Option } from "commander";
import type { DuplicateRisk } from "@a2a-relay/protocol";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given } from "../../command-line/given.ts";
import { repairAndShow } from "./repair.ts";

export interface RequeueOptions {
  readonly reason: string;
  readonly duplicateRisk: DuplicateRisk;
  readonly leaseId?: string;
}

export function addRequeue(line: CommandLine): void {
  line
    .command(
      "requeue <message-or-task-id>",
      "Take leased mail away from its worker and make it available again.",
      [
        'a2a-relay requeue 01981c5e-0000-7000-8000-000000000000 --reason "worker crashed" --duplicate-risk operator-accepted',
      ],
    )
    .requiredOption("--reason <text>", "why; it is kept in the journal")
    .addOption(duplicateRiskOption())
    .option("--lease-id <id>", "only if this is still its lease")
    .action(
      line.run<RequeueOptions, [string]>(async (context, options, id) => {
        const { reason, duplicateRisk, leaseId } = options;
        const guard = given({ lease_id: leaseId });
        await repairAndShow(context, id, {
          reason,
          command: { action: "requeue", duplicate_risk: duplicateRisk, ...guard },
        });
      }),
    );
}

export function duplicateRiskOption(): Option {
  return new Option(
    "--duplicate-risk <posture>",
    "why doing the work twice is fine: idempotent or operator-accepted",
  )
    .argParser(parseRisk)
    .makeOptionMandatory();
}

function parseRisk(text: string): DuplicateRisk {
  if (text === "idempotent") return text;
  if (text === "operator-accepted" || text === "operator_accepted") return "operator_accepted";
  throw new InvalidArgumentError("Allowed choices are idempotent, operator-accepted.");
}
