import type { CommandLine } from "../../command-line/command-line.ts";
import { given } from "../../command-line/given.ts";
import { repairAndShow } from "./repair.ts";

interface ForceErrorOptions {
  readonly reason: string;
  readonly message: string;
  readonly leaseId?: string;
}

export function addForceError(line: CommandLine): void {
  line
    .command("force-error <message-or-task-id>", "End stuck mail with an error that its sender gets.", [
      'a2a-relay force-error 01981c5e-0000-7000-8000-000000000000 --reason "worker is gone" --message "not done, please ask again"',
    ])
    .requiredOption("--reason <text>", "why; it is kept in the journal")
    .requiredOption("--message <text>", "what the sender is told")
    .option("--lease-id <id>", "only if this is still its lease")
    .action(
      line.run<ForceErrorOptions, [string]>(async (context, options, id) => {
        const { reason, message, leaseId } = options;
        const guard = given({ lease_id: leaseId });
        await repairAndShow(context, id, { reason, command: { action: "force_error", message, ...guard } });
      }),
    );
}
