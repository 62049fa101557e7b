import { RelayError, type RepairRequest, type RepairResponse } from "@a2a-relay/protocol";
import type { CommandContext } from "../../command-line/command-context.ts";
import { visibleLine } from "../../terminal/terminal-text.ts";

/** Repairs the mail of a message or of a task: whichever of the two the id names. */
export async function repairAndShow(
  context: CommandContext,
  id: string,
  repair: Pick<RepairRequest, "reason" | "command">,
): Promise<void> {
  const answer = await repairByEitherId(context, id, repair);
  await context.output.show(answer, () => [
    visibleLine(`${answer.action} ${answer.message_id}: ${answer.state}, attempt ${answer.attempt}`),
  ]);
}

async function repairByEitherId(
  { client, signal }: CommandContext,
  id: string,
  repair: Pick<RepairRequest, "reason" | "command">,
): Promise<RepairResponse> {
  try {
    return await client.repair({ message_id: id, ...repair }, { signal });
  } catch (reason) {
    if (!(reason instanceof RelayError) || reason.code !== "not_found") throw reason;
    return await client.repair({ task_id: id, ...repair }, { signal });
  }
}
