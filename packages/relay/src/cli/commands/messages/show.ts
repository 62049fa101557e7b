import type { DeliveryView, PushView, ReceiptStep } from "@a2a-relay/protocol";
import type { CommandLine } from "../../command-line/command-line.ts";
import { formatTime } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { visibleLine } from "../../terminal/text.ts";
import { messageLines } from "./message-text.ts";

const RECEIPTS: readonly Column<ReceiptStep>[] = [
  { title: "RECEIPT", text: (step) => step.stage, style: () => "cyan" },
  { title: "TIME", text: (step) => formatTime(step.at) },
  { title: "BY", text: (step) => step.by },
  { title: "WHY", text: (step) => step.reason ?? attemptText(step), flexible: true },
];

export function addShow(line: CommandLine): void {
  line
    .command("show <message-id>", "Show one message, its delivery and its receipts.", [
      "a2a-relay show msg_20260508_083000_lulu_to_zhiwei",
    ])
    .action(
      line.run<object, [string]>(async ({ client, output, signal }, _options, messageId) => {
        const answer = await client.message(messageId, { signal });
        await output.show(answer, () => [
          ...messageLines(answer, output.paint),
          ...(answer.delivery === undefined ? [] : [visibleLine(deliveryLine(answer.delivery))]),
          ...(answer.push === undefined ? [] : [visibleLine(pushLine(answer.push))]),
          ...(answer.delivery === undefined ? [] : [""]),
          ...output.table(answer.receipts, RECEIPTS),
        ]);
      }),
    );
}

function deliveryLine(delivery: DeliveryView): string {
  const { state, lease, reason } = delivery;
  const holder = lease === undefined ? "" : ` by ${lease.worker ?? "a worker"}, attempt ${lease.attempt}`;
  return `${state}${holder}${reason === undefined ? "" : `: ${reason}`}`;
}

function pushLine({ state, attempts, reason }: PushView): string {
  const tries = attempts.length === 1 ? "1 try" : `${attempts.length} tries`;
  return `push ${state} after ${tries}${reason === undefined ? "" : `: ${reason}`}`;
}

function attemptText(step: ReceiptStep): string {
  return step.attempt === undefined ? "" : `attempt ${step.attempt}`;
}
