import type { ItemResult } from "@a2a-relay/protocol";
import { EXIT, type ExitCode } from "../../command-line/exit-codes.ts";
import type { Output } from "../../terminal/output.ts";
import { visibleLine } from "../../terminal/terminal-text.ts";

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
