import { type PushEndpointView, type PushState, type PushView, PUSH_STATES } from "@a2a-relay/protocol";
import { type Command, Option } from "commander";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, durationOption, parseCount } from "../../command-line/options.ts";
import { formatDuration, formatTime, parsePastMs } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { type Paint, type TextStyle, factLines, visibleLine } from "../../terminal/text.ts";
import { SHOWN_ONCE } from "./agent-views.ts";

interface ShowOptions {
  readonly state?: PushState;
  readonly limit?: number;
}

const STATE_STYLE: Readonly<Record<PushState, TextStyle | undefined>> = {
  pending: "yellow",
  delivered: "green",
  failed: "red",
  dropped: "dim",
};

const COLUMNS: readonly Column<PushView>[] = [
  { title: "MESSAGE", text: (push) => push.message_id },
  { title: "STATE", text: (push) => push.state, style: (push) => STATE_STYLE[push.state] },
  { title: "TRIES", text: (push) => String(push.attempts.length) },
  { title: "LAST", text: lastAttempt },
  { title: "NEXT", text: (push) => formatTime(push.next_attempt_at ?? "") },
  { title: "WHY", text: (push) => push.reason ?? "", flexible: true },
];

export function addPush(line: CommandLine): void {
  const push = line.command("push", "Show where messages of an agent are pushed to, and push them again.", [
    "a2a-relay push show zhiwei",
    "a2a-relay agents register --id zhiwei@known-blocks1 --callback-url https://z.example/hook --push webhook",
  ]);
  addShow(line, push);
  addRotate(line, push);
  addReplay(line, push);
}

function addShow(line: CommandLine, parent: Command): void {
  line
    .command(
      "show <agent>",
      "Show the endpoint, its state, and the latest pushes.",
      ["a2a-relay push show zhiwei", "a2a-relay push show zhiwei --state failed"],
      { parent },
    )
    .addOption(new Option("--state <state>", "only pushes in this state").choices(PUSH_STATES))
    .option("--limit <n>", "how many pushes (default: 100)", parseCount)
    .action(
      line.run<ShowOptions, [string]>(async ({ client, output, signal }, options, agent) => {
        const query = given({ state: options.state, limit: options.limit });
        const endpoint = await client.push(agent, query, { signal });
        await output.show(endpoint, () => [
          ...endpointLines(endpoint, output.paint),
          ...(endpoint.pushes.length === 0 ? [] : ["", ...output.table(endpoint.pushes, COLUMNS)]),
        ]);
      }),
    );
}

function addRotate(line: CommandLine, parent: Command): void {
  line
    .command(
      "rotate <agent>",
      "Make a new secret for pushes; the old one signs beside it for a while.",
      ["a2a-relay push rotate zhiwei --overlap 1h"],
      { parent },
    )
    .addOption(durationOption("--overlap <duration>", "how long the old secret signs too (default: 24h)"))
    .action(
      line.run<{ readonly overlap?: number }, [string]>(
        async ({ client, output, signal }, options, agent) => {
          const rotated = await client.rotatePushSecret(agent, given({ overlap_ms: options.overlap }), {
            signal,
          });
          await output.show(rotated, () => [
            output.paint("bold", visibleLine(rotated.push_secret)),
            SHOWN_ONCE,
            visibleLine(`The old secret signs too until ${formatTime(rotated.old_secret_until)}.`),
          ]);
        },
      ),
    );
}

function addReplay(line: CommandLine, parent: Command): void {
  line
    .command(
      "replay <agent>",
      "Push again all open messages that arrived since a time.",
      [
        "a2a-relay push replay zhiwei --since 2h",
        "a2a-relay push replay zhiwei --since 2026-05-08T08:30:00Z",
      ],
      { parent },
    )
    .addOption(
      new Option("--since <when>", "a duration before now, or a time")
        .argParser((text: string) => parsePastMs(text))
        .makeOptionMandatory(),
    )
    .action(
      line.run<{ readonly since: number }, [string]>(async ({ client, output, signal }, options, agent) => {
        const since = new Date(options.since).toISOString();
        const answer = await client.replayPushes(agent, { since }, { signal });
        const messages = answer.replayed === 1 ? "1 message" : `${answer.replayed} messages`;
        await output.show(answer, () => [
          visibleLine(`${messages} to ${answer.agent_id} will be pushed again`),
        ]);
      }),
    );
}

function endpointLines(endpoint: PushEndpointView, paint: Paint): readonly string[] {
  const { circuit, open_until: openUntil } = endpoint;
  return [
    paint("bold", visibleLine(endpoint.agent_id)),
    ...factLines([
      ["push", endpoint.notice ? `${endpoint.push}, notices only` : endpoint.push],
      ["callback", endpoint.callback_url],
      ["2xx means", endpoint.ack ? "acknowledged" : "delivered"],
      ["state", endpoint.reason === undefined ? endpoint.state : `${endpoint.state}: ${endpoint.reason}`],
      ["circuit", circuit === "open" ? `open until ${formatTime(openUntil ?? "")}` : circuit],
      ["failures", `${endpoint.failures} in a row`],
      ["pending", String(endpoint.pending)],
      ["old secret", endpoint.old_secret_until && `signs until ${formatTime(endpoint.old_secret_until)}`],
    ]),
  ];
}

function lastAttempt({ attempts }: PushView): string {
  const last = attempts.at(-1);
  return last === undefined ? "" : `${last.status ?? "no answer"} in ${formatDuration(last.duration_ms)}`;
}
