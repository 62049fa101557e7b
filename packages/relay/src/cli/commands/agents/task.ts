import { type TaskSummary, type TaskTreeView, type TaskView, TASK_STATES } from "@a2a-relay/protocol";
import { type Command, Option } from "commander";
import type { CommandContext } from "../../command-line/command-context.ts";
import type { CommandLine } from "../../command-line/command-line.ts";
import { readTextOption } from "../../command-line/input.ts";
import { given, parseCount } from "../../command-line/options.ts";
import { formatTime } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { type Paint, type TextStyle, type Fact, factLines, visibleLine } from "../../terminal/text.ts";

interface ListOptions {
  readonly state?: (typeof TASK_STATES)[number];
  readonly agent?: string;
  readonly threadId?: string;
  readonly parent?: string;
  readonly since?: string;
  readonly limit: number;
}

interface WorkOptions {
  readonly text?: string;
  readonly reason: string;
  readonly partial?: boolean;
  readonly leaseId?: string;
}

const COLUMNS: readonly Column<TaskSummary>[] = [
  { title: "TASK", text: (task) => task.id },
  { title: "STATE", text: (task) => task.state, style: (task) => stateStyle(task.state) },
  { title: "REQUESTER", text: (task) => task.requester },
  { title: "ASSIGNEE", text: (task) => task.assignee },
  { title: "UPDATED", text: (task) => formatTime(task.updated_at) },
  { title: "SUBJECT", text: (task) => task.subject, flexible: true },
];

export function addTask(line: CommandLine): void {
  const task = line.command("task", "Show tasks and work on them.", [
    "a2a-relay task list --agent zhiwei@known-blocks1 --state submitted",
    'a2a-relay task complete TASK --text "done"',
  ]);
  addList(line, task);
  addShow(line, task);
  addTree(line, task);
  addWork(line, task);
  addEndings(line, task);
}

function addList(line: CommandLine, parent: Command): void {
  line
    .command("list", "List tasks.", ["a2a-relay task list --state working"], { parent })
    .addOption(new Option("--state <state>", "only tasks in this state").choices(TASK_STATES))
    .option("--agent <agent>", "only tasks this agent asked for or works on")
    .option("--thread-id <id>", "only this conversation")
    .option("--parent <task-id>", "only the parts of this task")
    .option("--since <cursor>", "only tasks after this cursor of an earlier answer")
    .option("--limit <n>", "at most this many", parseCount, 100)
    .action(
      line.run<ListOptions>(async ({ client, output, signal }, options) => {
        const { state, agent, threadId, since, limit } = options;
        const query = given({ state, agent, thread_id: threadId, parent: options.parent, since, limit });
        const answer = await client.tasks(query, { signal });
        await output.show({ count: answer.tasks.length, ...answer }, () =>
          answer.tasks.length === 0 ? ["no tasks"] : output.table(answer.tasks, COLUMNS),
        );
        if (answer.cursor !== undefined) await output.note(`there are more: --since ${answer.cursor}`);
      }),
    );
}

function addShow(line: CommandLine, parent: Command): void {
  line.command("show <task-id>", "Show one task.", ["a2a-relay task show TASK"], { parent }).action(
    line.run<object, [string]>(async (context, _options, id) => {
      await showTask(context, await context.client.task(id, { signal: context.signal }));
    }),
  );
}

function addTree(line: CommandLine, parent: Command): void {
  line
    .command("tree <task-id>", "Show a task with all its parts.", ["a2a-relay task tree TASK"], { parent })
    .action(
      line.run<object, [string]>(async ({ client, output, signal }, _options, id) => {
        const tree = await client.taskTree(id, { signal });
        await output.show(tree, () => treeLines(tree, output.paint, ""));
      }),
    );
}

function addWork(line: CommandLine, parent: Command): void {
  line
    .command("working <task-id>", "Report progress.", ['a2a-relay task working TASK --text "half done"'], {
      parent,
    })
    .option("--text <text>", "what the requester is told; - reads it from stdin")
    .option("--lease-id <id>", "the lease under which the work is done")
    .action(
      line.run<WorkOptions, [string]>(async (context, options, id) => {
        const request = given({ text: await textOf(context, options), lease_id: options.leaseId });
        const call = { signal: context.signal };
        await showTask(
          context,
          await context.client.reportStatus(id, { state: "working", ...request }, call),
        );
      }),
    );
  line
    .command(
      "complete <task-id>",
      "Finish a task.",
      ["make report | a2a-relay task complete TASK --text -"],
      { parent },
    )
    .option("--text <text>", "the result; - reads it from stdin")
    .option("--partial", "say that not everything was done")
    .option("--lease-id <id>", "the lease under which the work was done")
    .action(
      line.run<WorkOptions, [string]>(async (context, options, id) => {
        const status = options.partial === true ? ("partial" as const) : undefined;
        const text = await textOf(context, options);
        const request = given({ text, result_status: status, lease_id: options.leaseId });
        await showTask(context, await context.client.completeTask(id, request, { signal: context.signal }));
      }),
    );
}

function addEndings(line: CommandLine, parent: Command): void {
  for (const [verb, summary] of [
    ["fail", "Say that a task could not be done."],
    ["reject", "Decline a task."],
  ] as const) {
    line
      .command(
        `${verb} <task-id>`,
        summary,
        [`a2a-relay task ${verb} TASK --reason "no access to the repository"`],
        { parent },
      )
      .requiredOption("--reason <text>", "what the requester is told")
      .option("--lease-id <id>", "the lease under which the work was done")
      .action(
        line.run<WorkOptions, [string]>(async (context, options, id) => {
          const { client, signal } = context;
          const request = { reason: options.reason, ...given({ lease_id: options.leaseId }) };
          const ended =
            verb === "fail"
              ? client.failTask(id, request, { signal })
              : client.rejectTask(id, request, { signal });
          await showTask(context, await ended);
        }),
      );
  }
  line
    .command("cancel <task-id>", "Withdraw a task.", ["a2a-relay task cancel TASK --reason outdated"], {
      parent,
    })
    .option("--reason <text>", "what its worker is told")
    .action(
      line.run<{ readonly reason?: string }, [string]>(async (context, { reason }, id) => {
        await showTask(
          context,
          await context.client.cancelTask(id, given({ reason }), { signal: context.signal }),
        );
      }),
    );
}

async function textOf(context: CommandContext, options: WorkOptions): Promise<string | undefined> {
  return options.text === undefined ? undefined : await readTextOption(options.text, context.io);
}

async function showTask({ output }: CommandContext, task: TaskView): Promise<void> {
  await output.show(task, () => {
    const facts: readonly Fact[] = [
      ["subject", task.subject],
      ["requester", task.requester],
      ["assignee", task.assignee],
      ["thread", task.thread_id],
      ["message", task.message_id],
      ["parent", task.parent],
      [
        "due",
        task.deadline_ms === undefined ? undefined : formatTime(new Date(task.deadline_ms).toISOString()),
      ],
      ["status", task.status_text],
      ["result", task.result_status],
      ["artifacts", task.artifacts.length === 0 ? undefined : String(task.artifacts.length)],
      ["updated", formatTime(task.updated_at)],
    ];
    return [taskLine(task, output.paint), ...factLines(facts)];
  });
}

function treeLines(tree: TaskTreeView, paint: Paint, indent: string): readonly string[] {
  const subject = visibleLine(`${tree.task.assignee}  ${tree.task.subject}`);
  return [
    `${indent}${taskLine(tree.task, paint)}  ${subject}`,
    ...tree.children.flatMap((child) => treeLines(child, paint, `${indent}  `)),
  ];
}

function taskLine(task: Pick<TaskView, "id" | "state">, paint: Paint): string {
  return `${paint("bold", visibleLine(task.id))}  ${paint(stateStyle(task.state), task.state)}`;
}

function stateStyle(state: TaskView["state"]): TextStyle {
  if (state === "completed") return "green";
  return state === "failed" || state === "rejected" || state === "canceled" ? "red" : "yellow";
}
