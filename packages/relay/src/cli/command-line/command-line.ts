import { Command, Help, Option } from "commander";
import type { CliIo } from "../terminal/output.ts";
import { CommandContext, type GlobalOptions } from "./command-context.ts";
import { EXIT, type ExitCode } from "./exit.ts";

type CommandHandler<Options, Operands extends readonly unknown[]> = (
  context: CommandContext,
  options: Options,
  ...operands: Operands
) => Promise<ExitCode | void>;

interface CommandPlacement {
  /** The group it belongs to; default: the top level. */
  readonly parent?: Command;
  /** Runs when only the group is named. */
  readonly isDefault?: boolean;
}

/** The tree of commands, with what all of them share. Each command adds itself. */
export class CommandLine {
  readonly program: Command;
  readonly #io: CliIo;
  #exitCode: ExitCode = EXIT.ok;

  constructor(io: CliIo) {
    this.#io = io;
    this.program = addGlobalOptions(new Command("a2a-relay"))
      // Options belong to the command they follow: in `--exec -- program --json` the program gets `--json`.
      .enablePositionalOptions()
      .exitOverride()
      .showSuggestionAfterError()
      .configureHelp({ groupItems: globalOptionsLast, subcommandTerm })
      .configureOutput({
        writeOut: (text) => io.stdout.write(text),
        writeErr: (text) => io.stderr.write(text),
        getOutHelpWidth: () => io.stdout.columns ?? 100,
        getErrHelpWidth: () => io.stderr.columns ?? 100,
        getOutHasColors: () => false,
        getErrHasColors: () => false,
      });
  }

  get exitCode(): ExitCode {
    return this.#exitCode;
  }

  /** Adds a command whose help ends with the examples. */
  command(
    nameAndArguments: string,
    summary: string,
    examples: readonly string[],
    placement: CommandPlacement = {},
  ): Command {
    const { parent = this.program, isDefault = false } = placement;
    return addGlobalOptions(parent.command(nameAndArguments, { isDefault }))
      .description(summary)
      .addHelpText(
        "after",
        `\n${examples.length === 1 ? "Example" : "Examples"}:\n${examples.map((example) => `  $ ${example}`).join("\n")}`,
      );
  }

  /** Wraps a handler into commander's action: with its context, its own options and its operands. */
  run<Options = object, Operands extends readonly unknown[] = []>(
    handler: CommandHandler<Options, Operands>,
  ): (this: Command) => Promise<void> {
    const io = this.#io;
    const setExitCode = (code: ExitCode): void => {
      this.#exitCode = code;
    };
    return async function action(this: Command) {
      const context = new CommandContext(io, globalOptionsOf(this));
      // Commander has checked both against the command's declaration, which the handler's types repeat.
      const operands = this.processedArgs as unknown as Operands;
      setExitCode((await handler(context, this.opts() as Options, ...operands)) ?? EXIT.ok);
    };
  }
}

const GLOBAL_HEADING = "Global options:";

type GroupItems = Help["groupItems"];

/** A command's own options come first in its help. */
const globalOptionsLast: GroupItems = (unsorted, visible, groupOf) => {
  const groups = new Help().groupItems(unsorted, visible, groupOf);
  const globals = groups.get(GLOBAL_HEADING);
  if (globals === undefined) return groups;
  groups.delete(GLOBAL_HEADING);
  return groups.set(GLOBAL_HEADING, globals);
};

/** Without commander's `[options]` after every command. */
function subcommandTerm(command: Command): string {
  const names = [command.name(), ...command.aliases()].join("|");
  const operands = command.registeredArguments.map((argument) => {
    const name = argument.variadic ? `${argument.name()}...` : argument.name();
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [names, ...operands].join(" ");
}

function addGlobalOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--relay <url>",
        "the relay to talk to (or A2A_RELAY_URL; default http://127.0.0.1:8080)",
      ).helpGroup(GLOBAL_HEADING),
    )
    .addOption(
      new Option("--api-key <key>", "your key, if the relay asks for one (or A2A_RELAY_API_KEY)").helpGroup(
        GLOBAL_HEADING,
      ),
    )
    .addOption(new Option("--json", "print JSON and nothing else").helpGroup(GLOBAL_HEADING))
    .addOption(new Option("--no-color", "print without colours").helpGroup(GLOBAL_HEADING));
}

/** Global options may stand before and after the command's name; the nearest one counts. */
function globalOptionsOf(command: Command): GlobalOptions {
  const given = (name: string): unknown => {
    for (let level: Command | null = command; level !== null; level = level.parent) {
      if (level.getOptionValueSource(name) === "cli") return level.getOptionValue(name);
    }
    return undefined;
  };
  const text = (name: string): string | undefined => {
    const value = given(name);
    return typeof value === "string" ? value : undefined;
  };
  return {
    relay: text("relay"),
    apiKey: text("apiKey"),
    json: given("json") === true,
    color: given("color") !== false,
  };
}
