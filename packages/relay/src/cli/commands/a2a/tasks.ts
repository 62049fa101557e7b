import type { Command } from "commander";
import type { CommandLine } from "../../command-line/command-line.ts";
import { EXIT } from "../../command-line/exit.ts";
import { parseCount } from "../../command-line/options.ts";
import { visibleLine } from "../../terminal/text.ts";
import { addCallOptions, callAgent, type CallOptions } from "./called-agent.ts";
import { showEvents, reportOutcome, type TaskStatus } from "./outcome.ts";
import { a2aTaskLines, stateName } from "./text.ts";

interface GetOptions extends CallOptions {
  readonly history?: number;
}

interface SubscribeOptions extends CallOptions {
  readonly lastEventId?: string;
}

export function addA2aTasks(line: CommandLine, parent: Command): void {
  addGet(line, parent);
  addCancel(line, parent);
  addSubscribe(line, parent);
}

function addGet(line: CommandLine, parent: Command): void {
  const command = line
    .command(
      "get <agent> <task-id>",
      "Show a task of an A2A agent.",
      ["a2a-relay a2a get zhiwei@known-blocks1 TASK --history 10"],
      { parent },
    )
    .option("--history <n>", "and the last messages of it, at most this many", parseCount);
  addCallOptions(command).action(
    line.run<GetOptions, [string, string]>(async (context, options, target, id) => {
      const { output, signal } = context;
      const { history: historyLength } = options;
      const agent = await callAgent(context, target, options);
      const task = await agent.call((client) => client.getTask(id, { historyLength, signal }));
      const withHistory = historyLength !== undefined;
      await output.show(task, () => a2aTaskLines(task, output.paint, { withHistory }));
    }),
  );
}

function addCancel(line: CommandLine, parent: Command): void {
  const command = line.command(
    "cancel <agent> <task-id>",
    "Ask an A2A agent to stop working on a task.",
    ["a2a-relay a2a cancel zhiwei@known-blocks1 TASK"],
    { parent },
  );
  addCallOptions(command).action(
    line.run<CallOptions, [string, string]>(async (context, options, target, id) => {
      const { output, signal } = context;
      const agent = await callAgent(context, target, options);
      const task = await agent.call((client) => client.cancelTask(id, { signal }));
      await output.show(task, () => a2aTaskLines(task, output.paint));
      if (task.status.state === "TASK_STATE_CANCELED") return EXIT.ok;
      const state = stateName(task.status.state);
      await output.error(`task ${visibleLine(id)} is ${state}: the agent has not canceled it`);
      return EXIT.failure;
    }),
  );
}

function addSubscribe(line: CommandLine, parent: Command): void {
  const command = line
    .command(
      "subscribe <agent> <task-id>",
      "Print the events of a task of an A2A agent until it is over, a line each.",
      ["a2a-relay a2a subscribe zhiwei@known-blocks1 TASK --last-event-id 3"],
      { parent },
    )
    .option("--last-event-id <id>", "only events after this one; its id is the first word of its line");
  addCallOptions(command).action(
    line.run<SubscribeOptions, [string, string]>(async (context, options, target, id) => {
      const { signal } = context;
      const { lastEventId } = options;
      const agent = await callAgent(context, target, options);
      const onStatus = async (taskStatus: TaskStatus): Promise<void> => {
        // Printed at once, because the stream goes on until the question is answered.
        if (isWaiting(taskStatus)) await reportOutcome(context, agent, taskStatus);
      };
      const last = await agent.call((client) =>
        showEvents(context, client.subscribe(id, { lastEventId, signal }), onStatus),
      );
      return last === undefined || isWaiting(last) ? EXIT.ok : await reportOutcome(context, agent, last);
    }),
  );
}

function isWaiting({ status: { state } }: TaskStatus): boolean {
  return state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED";
}
