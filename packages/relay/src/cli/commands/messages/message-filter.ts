import type { RelayClient } from "@a2a-relay/client";
import { type Message, MESSAGE_KINDS } from "@a2a-relay/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import { collect } from "../../command-line/options.ts";

export interface MessageFilterOptions {
  readonly allowFrom?: readonly string[];
  readonly allowedType?: readonly string[];
}

/** Why a message is refused; undefined when it is allowed. */
export type MessageFilter = (message: Pick<Message, "from" | "type">) => string | undefined;

export function addMessageFilterOptions(command: Command): Command {
  return command
    .option("--allow-from <agent>", "only messages of this sender; may be repeated", collect)
    .addOption(
      new Option(
        "--allowed-type <type>",
        `only messages of this type; may be repeated (${MESSAGE_KINDS.join(", ")})`,
      ).argParser(parseKind),
    );
}

/** Resolves the senders' aliases first: an unknown name ends the command before it reads any message. */
export async function createMessageFilter(
  client: RelayClient,
  options: MessageFilterOptions,
  call: { readonly signal: AbortSignal },
): Promise<MessageFilter> {
  const names = options.allowFrom ?? [];
  const agents = await Promise.all(names.map((name) => client.agent(name, call)));
  const senders = new Set(agents.map((agent) => agent.agent_id));
  const kinds = new Set(options.allowedType ?? []);
  return (message) => {
    if (senders.size > 0 && !senders.has(message.from)) return `sender not allowed: ${message.from}`;
    if (kinds.size > 0 && !kinds.has(message.type)) return `message type not allowed: ${message.type}`;
    return undefined;
  };
}

function parseKind(text: string, earlier: readonly string[] | undefined): readonly string[] {
  if ((MESSAGE_KINDS as readonly string[]).includes(text)) return collect(text, earlier);
  throw new InvalidArgumentError(`Allowed choices are ${MESSAGE_KINDS.join(", ")}.`);
}
