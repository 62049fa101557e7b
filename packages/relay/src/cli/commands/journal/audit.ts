import { type FileHandle, open } from "node:fs/promises";
import { addAbortSignal } from "node:stream";
import {
  type AnchorView,
  type EventView,
  formatInstant,
  LIMITS,
  RelayError,
  type VerifyResponse,
} from "@a2a-relay/protocol";
import { type Command, InvalidArgumentError } from "commander";
import {
  anchorLine,
  eventFrom,
  eventLine,
  ExportedChain,
  type ExportReport,
  type NotedAnchor,
  notedProblem,
  verifyExport,
} from "../../../server/offline-audit.ts";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT, type ExitCode } from "../../command-line/exit.ts";
import { unusableFile } from "../../command-line/input.ts";
import { parseCount } from "../../command-line/options.ts";
import type { CliIo, CliWritable, Output } from "../../terminal/output.ts";
import { factLines, visibleLine } from "../../terminal/text.ts";

interface VerifyOptions {
  readonly file?: string;
  readonly anchor?: NotedAnchor;
}

interface ExportOptions {
  readonly out?: string;
  readonly since: number;
  readonly force?: boolean;
}

export function addAudit(line: CommandLine): void {
  const audit = line.command("audit", "Check the journal for edits, and export it.", [
    "a2a-relay audit verify",
    "a2a-relay audit export --out journal.jsonl",
  ]);
  addVerify(line, audit);
  addExport(line, audit);
}

function addVerify(line: CommandLine, parent: Command): void {
  line
    .command(
      "verify",
      "Check the whole hash chain; exit code 1 when it was edited or cut.",
      ["a2a-relay audit verify", "a2a-relay audit verify --file journal.jsonl --anchor 40:6b86b273…"],
      { parent },
    )
    .option("--file <file>", "check an export instead, without a relay; - reads it from stdin")
    .option("--anchor <seq:hash>", "it must also hold this event, noted from an earlier answer", parseAnchor)
    .action(
      line.run<VerifyOptions>(async (context, { file, anchor }) => {
        const report =
          file === undefined ? await verifyRelay(context, anchor) : await verifyFile(context, file, anchor);
        return await showReport(context.output, report);
      }),
    );
}

function addExport(line: CommandLine, parent: Command): void {
  line
    .command(
      "export",
      "Write the journal as lines of JSON that can be checked without a relay.",
      ["a2a-relay audit export --out journal.jsonl", "a2a-relay audit export --since 40 --out more.jsonl"],
      { parent },
    )
    .option("--out <file>", "where to; without it: stdout")
    .option(
      "--since <seq>",
      "only events after this one, to go on where an earlier export ended",
      parseCount,
      0,
    )
    .option("--force", "overwrite the file if it exists")
    .action(line.run<ExportOptions>(exportJournal));
}

function parseAnchor(text: string): NotedAnchor {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.toLowerCase()) ?? [];
  if (seq !== undefined && hash !== undefined && Number(seq) > 0) return { seq: Number(seq), hash };
  throw new InvalidArgumentError("Expected the number of an event, a colon, and its hash of 64 hex digits.");
}

async function verifyRelay(
  { client, signal }: CommandContext,
  noted: NotedAnchor | undefined,
): Promise<VerifyResponse> {
  const answer = await client.verifyJournal({ signal });
  if (!answer.ok || noted === undefined) return answer;
  const { events } = await client.events({ since: String(noted.seq - 1), limit: 1 }, { signal });
  const problem = notedProblem(noted, {
    first: answer.first_seq,
    last: answer.last_seq,
    hash: hashAt(noted.seq, events[0]),
  });
  return problem === undefined ? answer : { ...answer, ok: false, problem };
}

/** After retention, the first event that is left still has the hash of its predecessor. */
function hashAt(seq: number, event: EventView | undefined): string | undefined {
  if (event?.seq === seq) return event.hash;
  return event?.seq === seq + 1 ? event.previous_hash : undefined;
}

async function verifyFile(
  { io }: CommandContext,
  path: string,
  noted: NotedAnchor | undefined,
): Promise<ExportReport> {
  const { signal, stdin } = io;
  if (path === "-") return verifyExport(addAbortSignal(signal, stdin) as AsyncIterable<Uint8Array>, noted);
  const failed = unusableFile("--file", path, "read");
  await using file = await open(path, "r").catch(failed);
  const chunks = addAbortSignal(signal, file.createReadStream({ autoClose: false }));
  return await verifyExport(chunks, noted).catch(failed);
}

async function showReport(output: Output, report: VerifyResponse | ExportReport): Promise<ExitCode> {
  await output.show(report, () => reportLines(report));
  if (report.ok) return EXIT.ok;
  if (!output.json) await output.error(visibleLine(report.problem ?? "the chain is broken"));
  return EXIT.failure;
}

function reportLines(report: VerifyResponse | ExportReport): readonly string[] {
  const { events, first_seq, last_seq, head } = report;
  const facts = factLines([
    ["tenant", "tenant" in report ? report.tenant : undefined],
    ["events", events === 0 ? "none" : `${first_seq} to ${last_seq}`],
    ["messages", "messages" in report ? String(report.messages) : undefined],
    ["head", `${last_seq}:${head}`],
    ["anchor", "messages" in report ? anchorText(report.anchor) : undefined],
    ["newest", "newest_anchor" in report ? anchorText(report.newest_anchor) : undefined],
  ]);
  return report.ok ? [`the chain of ${events} events is unbroken`, ...facts] : facts;
}

function anchorText(anchor: AnchorView | undefined): string {
  return anchor === undefined
    ? "none is kept outside the log yet"
    : `${anchor.seq}:${anchor.hash} of ${anchor.at}`;
}

async function exportJournal(context: CommandContext, options: ExportOptions): Promise<ExitCode> {
  const { output } = context;
  await using target = await Target.open(options, context.io);
  const chain = new ExportedChain();
  let problem: string | undefined;
  try {
    problem = await copyEvents(context, options.since, chain, target);
    if (chain.last !== undefined) {
      const { tenant, seq, hash } = chain.last;
      await target.write([anchorLine({ tenant, seq, hash, at: formatInstant(Date.now()) })]);
    }
    await target.finish();
  } catch (reason) {
    const seq = chain.last?.seq;
    if (seq !== undefined) await output.note(`exported up to event ${seq}; go on with --since ${seq}`);
    throw reason;
  }
  const report = chain.report(problem);
  const { events, first_seq, last_seq, head } = report;
  const summary =
    events === 0 ? "no events" : `exported events ${first_seq} to ${last_seq}, head ${last_seq}:${head}`;
  if (options.out === undefined) await output.note(summary);
  else await output.show({ file: options.out, ...report }, () => [summary]);
  if (problem === undefined) return EXIT.ok;
  await output.error(visibleLine(problem));
  return EXIT.failure;
}

/** Copies all events that exist at the start. Edited events are exported too; returns the first problem. */
async function copyEvents(
  { client, output, signal }: CommandContext,
  since: number,
  chain: ExportedChain,
  target: Target,
): Promise<string | undefined> {
  const end = Number((await client.events({ since: "latest", limit: 1 }, { signal })).cursor);
  if (since > end) {
    throw new RelayError("invalid_argument", `--since ${since}: the journal ends with event ${end}`);
  }
  let problem: string | undefined;
  let reached = since;
  while (reached < end) {
    const page = await client.events({ since: String(reached), limit: LIMITS.listLimitMax }, { signal });
    const events = page.events.map(readEvent).filter(({ seq }) => seq <= end);
    const [first] = events;
    if (first === undefined) break;
    if (chain.last === undefined && first.seq > since + 1) {
      await output.note(`events ${since + 1} to ${first.seq - 1} are no longer there, but in the archive`);
    }
    for (const event of events) {
      const found = chain.add(event);
      problem ??= found;
    }
    await target.write(events.map(eventLine));
    reached = events.at(-1)?.seq ?? end;
  }
  return problem;
}

function readEvent(view: EventView): NonNullable<ReturnType<typeof eventFrom>> {
  const event = eventFrom(view);
  if (event !== undefined) return event;
  throw new RelayError(
    "internal",
    `event ${view.seq} lacks what its hash covers; is the relay an older one?`,
  );
}

/** A new file that only its owner can read, or stdout. */
class Target implements AsyncDisposable {
  readonly #file: FileHandle | undefined;
  readonly #stdout: CliWritable;

  private constructor(file: FileHandle | undefined, stdout: CliWritable) {
    this.#file = file;
    this.#stdout = stdout;
  }

  static async open({ out, force }: ExportOptions, { stdout }: CliIo): Promise<Target> {
    if (out === undefined) return new Target(undefined, stdout);
    try {
      return new Target(await open(out, force === true ? "w" : "wx", 0o600), stdout);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST")
        return unusableFile("--out", out, "written")(cause);
      const advice = "choose another name, or pass --force to overwrite it";
      throw new RelayError("conflict", `${out} exists already; ${advice}`, { cause });
    }
  }

  async write(lines: readonly string[]): Promise<void> {
    const text = `${lines.join("\n")}\n`;
    if (this.#file !== undefined) return await this.#file.appendFile(text);
    await new Promise<void>((resolve, reject) => {
      this.#stdout.write(text, (reason) => (reason instanceof Error ? reject(reason) : resolve()));
    });
  }

  async finish(): Promise<void> {
    await this.#file?.sync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close();
  }
}
