import type { RelayAgentOptions } from "@a2a-relay/client";
import { LIMITS, RelayError } from "@a2a-relay/protocol";
import { type Command, InvalidArgumentError } from "commander";
import { loadCassette } from "../../../cassettes/cassette-parser.ts";
import type { Cassette } from "../../../cassettes/cassette.ts";
import { RecordingAgent, type Recorded } from "../../../cassettes/recording-agent.ts";
import { type Played, ScriptedAgent } from "../../../cassettes/scripted-agent.ts";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT, type ExitCode } from "../../command-line/exit.ts";
import { truncateDisplay, visibleLine } from "../../terminal/text.ts";

interface ReplayOptions {
  readonly as?: string;
  readonly cassette: string;
  readonly once?: boolean;
  readonly register?: boolean;
  readonly strict?: boolean;
  readonly worker?: string;
}

interface RecordOptions {
  readonly as: string;
  readonly cassette: string;
  readonly upstream: string;
  readonly register?: boolean;
  readonly worker?: string;
}

const WORKER_HELP =
  "its name among several processes of the agent; it continues the work of an earlier process of this name";

/** Terminal cells. */
const TEXT_WIDTH = 60;

export function addAgent(line: CommandLine): void {
  const agent = line.command("agent", "Run an agent that answers from a cassette, or record one.", [
    "a2a-relay agent replay --as zhiwei@studio --cassette zhiwei.yaml",
  ]);
  addReplay(line, agent);
  addRecord(line, agent);
}

function addReplay(line: CommandLine, parent: Command): void {
  line
    .command(
      "replay",
      "Answer the messages of an agent from a cassette until stopped.",
      ["a2a-relay agent replay --as zhiwei@studio --cassette zhiwei.yaml --register"],
      { parent },
    )
    .option("--as <agent>", "the agent that answers; default: the agent that the cassette names")
    .requiredOption("--cassette <file>", "the answers, a YAML file")
    .option("--once", "play each exchange once, then end")
    .option("--register", "register the agent if it is unknown")
    .option("--strict", "end with code 1 if a message arrived that the cassette does not match")
    .option("--worker <name>", WORKER_HELP)
    .action(line.run<ReplayOptions>(replay));
}

function addRecord(line: CommandLine, parent: Command): void {
  line
    .command(
      "record",
      "Pass the messages of an agent on to a real one, and write what it answers into a cassette.",
      ["a2a-relay agent record --as zhiwei@studio --upstream zhiwei@cloud --cassette zhiwei.yaml"],
      { parent },
    )
    .requiredOption("--as <agent>", "the agent whose messages are passed on")
    .requiredOption("--cassette <file>", "where the answers are added, a YAML file")
    .requiredOption("--upstream <agent>", "the real agent")
    .option("--register", "register the agent if it is unknown")
    .option("--worker <name>", WORKER_HELP)
    .action(line.run<RecordOptions>(record));
}

async function replay(context: CommandContext, options: ReplayOptions): Promise<ExitCode> {
  const { output, signal } = context;
  const cassette = await cassetteOf(options);
  const name = options.as ?? cassette.agent;
  if (name === undefined) throw new InvalidArgumentError(`--as is needed: ${cassette.file} names no agent`);
  const id = await agentIdOf(context, name, options.register === true);
  let unmatched = 0;
  const onPlayed = async (played: Played): Promise<void> => {
    if (played.exchange === undefined) unmatched += 1;
    await output.showNext(playedValue(played), () => [playedLine(played, cassette)]);
  };
  const shared = agentOptionsOf(context, options.worker);
  const agent = new ScriptedAgent({ ...shared, id, onPlayed, crash: die }, cassette);
  await agent.start();
  const { length } = cassette.exchanges;
  await output.note(
    visibleLine(`${id} answers from ${cassette.file}: ${length} exchanges, ${cassette.mode}`),
  );
  await (options.once === true
    ? Promise.race([agent.through, context.interrupted()])
    : context.interrupted());
  await agent.stop();
  if (options.strict === true && unmatched > 0) {
    await output.error(`${unmatched} messages came that ${visibleLine(cassette.file)} does not match`);
    return EXIT.failure;
  }
  return signal.aborted ? EXIT.interrupted : EXIT.ok;
}

async function record(context: CommandContext, options: RecordOptions): Promise<ExitCode> {
  const { output, signal, client } = context;
  const id = await agentIdOf(context, options.as, options.register === true);
  const { agent_id: upstream } = await client.agent(options.upstream, { signal });
  const shared = agentOptionsOf(context, options.worker);
  const onRecorded = (recorded: Recorded): Promise<void> =>
    output.showNext(recordedValue(recorded), () => [recordedLine(recorded)]);
  const agent = new RecordingAgent({ ...shared, id, upstream, cassette: options.cassette, onRecorded });
  await agent.start();
  await output.note(
    visibleLine(`${id} passes its messages on to ${upstream} and records into ${options.cassette}`),
  );
  await context.interrupted();
  await agent.stop();
  return EXIT.interrupted;
}

async function cassetteOf({ cassette: path, once }: ReplayOptions): Promise<Cassette> {
  const cassette = await loadCassette(path);
  return once === true && cassette.mode === "loop" ? { ...cassette, mode: "once" } : cassette;
}

/** Accepts an alias. Registers only with --register: a misspelt name would wait for ever. */
async function agentIdOf(context: CommandContext, name: string, mayRegister: boolean): Promise<string> {
  const { client, signal } = context;
  try {
    return (await client.agent(name, { signal })).agent_id;
  } catch (reason) {
    if (mayRegister && reason instanceof RelayError && reason.code === "unknown_agent") return name;
    throw reason;
  }
}

function agentOptionsOf(
  { connection, output }: CommandContext,
  worker: string | undefined,
): Omit<RelayAgentOptions, "id"> {
  const onError = (error: Error, activity: string): Promise<void> =>
    output.note(visibleLine(`${activity}: ${error.message}`));
  const { url, apiKey } = connection;
  return { url, apiKey, onError, ...(worker === undefined ? {} : { worker }) };
}

/** As a power failure: no report, no cleanup. */
function die(): void {
  process.kill(process.pid, "SIGKILL");
}

function playedValue({ message, taskId, exchange, outcome }: Played): Readonly<Record<string, unknown>> {
  return {
    message_id: message.id,
    ...(taskId === undefined ? {} : { task_id: taskId }),
    from: message.from,
    outcome,
    matched: exchange !== undefined,
    ...(exchange === undefined ? {} : { line: exchange.line }),
    ...(exchange?.name === undefined ? {} : { exchange: exchange.name }),
  };
}

function playedLine({ message, exchange, outcome }: Played, { file }: Cassette): string {
  const name = exchange?.name === undefined ? "" : `${exchange.name}, `;
  const why = exchange === undefined ? "nothing matched" : `${name}${file}:${exchange.line}`;
  return `${outcome}  ${gistOf(message)}  (${visibleLine(why)})`;
}

function recordedValue({ message, taskId, state, isWritten }: Recorded): Readonly<Record<string, unknown>> {
  return { message_id: message.id, task_id: taskId, from: message.from, state, recorded: isWritten };
}

function recordedLine({ message, state, isWritten }: Recorded): string {
  return `${isWritten ? "recorded" : "not recorded"}  ${gistOf(message)}  (${state})`;
}

function gistOf({ from, body }: { readonly from: string; readonly body: string }): string {
  return truncateDisplay(visibleLine(`${from}: ${body.slice(0, LIMITS.subjectCharsMax)}`), TEXT_WIDTH);
}
