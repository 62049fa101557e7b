import type { CommandLine } from "../../command-line/command-line.ts";
import { agentLines, ownKeyLines } from "./agent-views.ts";
import { given } from "../../command-line/given.ts";
import { collect } from "../../command-line/options.ts";
import { addList, addRemove, addShow } from "./agents.ts";

interface AddOptions {
  readonly id: string;
  readonly displayName?: string;
  readonly alias?: readonly string[];
}

/** The address book: the same agents, under the words of people who think in contacts. */
export function addContacts(line: CommandLine): void {
  const contacts = line.command("contacts", "The address book: agents by id and alias.", [
    "a2a-relay contacts add --id kames@kamac --display-name kames --alias kam",
    "a2a-relay contacts list",
  ]);
  line
    .command(
      "add",
      "Add a contact or update it.",
      ["a2a-relay contacts add --id kames@kamac --display-name kames --alias kames --alias kam"],
      { parent: contacts },
    )
    .requiredOption("--id <agent>", "its stable id")
    .option("--display-name <name>", "the name for people")
    .option("--alias <name>", "another name it is found by; may be repeated", collect)
    .action(
      line.run<AddOptions>(async ({ client, output, signal }, options) => {
        const aliases = options.alias === undefined ? undefined : [...options.alias];
        const request = given({ agent_id: options.id, display_name: options.displayName, aliases });
        const answer = await client.register(request, { signal });
        await output.show(given({ ...answer.agent, api_key: answer.api_key }), () => [
          ...agentLines(answer.agent, output.paint),
          ...ownKeyLines(answer, output.paint),
        ]);
      }),
    );
  addList(line, contacts);
  addShow(line, contacts);
  addRemove(line, contacts);
}
