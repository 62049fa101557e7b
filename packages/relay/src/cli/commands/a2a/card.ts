import type { Command } from "commander";
import { a2aCardLines } from "./card-text.ts";
import { addHeadersOption, callAgent, type CallOptions } from "./called-agent.ts";
import type { CommandLine } from "../../command-line/command-line.ts";

export function addA2aCard(line: CommandLine, parent: Command): void {
  const command = line.command(
    "card <agent>",
    "Show the card of an A2A agent: of the relay by its name, or of any other by its address.",
    ["a2a-relay a2a card zhiwei@known-blocks1", "a2a-relay a2a card https://agent.example.org --json"],
    { parent },
  );
  addHeadersOption(command).action(
    line.run<CallOptions, [string]>(async (context, options, target) => {
      const { output, signal } = context;
      const agent = await callAgent(context, target, options);
      const card = await agent.call(() => agent.cards.getAgentCard({ signal }));
      await output.show(card, () => a2aCardLines(card, output.paint));
    }),
  );
}
