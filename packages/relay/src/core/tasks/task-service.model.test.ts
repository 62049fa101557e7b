import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isTerminal, type MailboxItem, RelayError, type TaskState } from "@a2a-relay/protocol";
import fc from "fast-check";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../../testing/core-on-memory.ts";
import { type ModelTask, type ModelWork, type TaskOutcome, TaskModel } from "../../../testing/task-model.ts";
import { DEFAULT_TENANT } from "../access/principal.ts";

const KAMES = "kames@kamac";
const WORKERS = ["w1", "w2"] as const;
/** After each act only the newest are compared, after the last act all. */
const COMPARED_TASKS = 2;

/** Which lease a worker comes with: none, the one in force, or any that was ever given. */
type Right = "none" | "current" | "any";

type Act =
  | { readonly act: "request"; readonly to: string; readonly deadlineInMs: number | undefined }
  | { readonly act: "lease"; readonly agent: string; readonly worker: string }
  | { readonly act: "release" | "ack" | "requeue"; readonly pick: number }
  | (OnTask & { readonly act: "status"; readonly state: "working" | "input-required" | "auth-required" })
  | (OnTask & { readonly act: "artifact"; readonly name: string; readonly append: boolean })
  | (OnTask & { readonly act: "complete" | "fail" | "reject" | "reply"; readonly words: string })
  | (OnTask & { readonly act: "ask" })
  | (OnTask & { readonly act: "message"; readonly state: TaskState; readonly words: string })
  | (OnTask & { readonly act: "handoff" })
  | { readonly act: "cancel"; readonly task: number }
  | { readonly act: "followUp"; readonly task: number }
  | { readonly act: "formerReply"; readonly task: number }
  | { readonly act: "advance"; readonly ms: number }
  | { readonly act: "sweep" };

interface OnTask {
  readonly task: number;
  readonly right: Right;
  readonly pick: number;
}

const task = fc.nat({ max: 1 });
const pick = fc.nat({ max: 4 });
const worker = fc.constantFrom(ZHIWEI, ZHIWEI, KAMES);
const words = fc.constantFrom("甲", "乙");
const onTask = { task, right: fc.constantFrom<Right>("current", "current", "none", "any"), pick };
const only = <Name extends string>(name: Name): fc.Arbitrary<Name> => fc.constant(name);

const ACT: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      act: only("request"),
      to: worker,
      deadlineInMs: fc.constantFrom(undefined, undefined, 2_000),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ act: only("lease"), agent: worker, worker: fc.constantFrom(...WORKERS) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constantFrom("release" as const, "requeue" as const, "ack" as const),
      pick,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      act: only("status"),
      ...onTask,
      state: fc.constantFrom("working" as const, "input-required" as const, "auth-required" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: only("artifact"),
      ...onTask,
      name: fc.constantFrom("a", "b"),
      append: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constantFrom("complete" as const, "fail" as const, "reject" as const, "reply" as const),
      ...onTask,
      words,
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: only("ask"), ...onTask }) },
  {
    weight: 1,
    arbitrary: fc.record({
      act: only("message"),
      ...onTask,
      state: fc.constantFrom<TaskState>("working", "completed", "rejected", "canceled", "submitted"),
      words,
    }),
  },
  { weight: 2, arbitrary: fc.record({ act: only("handoff"), ...onTask }) },
  { weight: 3, arbitrary: fc.record({ act: only("followUp"), task }) },
  {
    weight: 1,
    arbitrary: fc.record({ act: fc.constantFrom("cancel" as const, "formerReply" as const), task }),
  },
  { weight: 2, arbitrary: fc.record({ act: only("advance"), ms: fc.constantFrom(1, 999, 1_000) }) },
  { weight: 2, arbitrary: fc.record({ act: only("sweep") }) },
);

interface Grant {
  readonly messageId: string;
  readonly leaseId: string;
}

/** A real core and the model beside it, fed the same acts. */
class History {
  readonly #core: CoreOnMemory;
  readonly #model: TaskModel;
  readonly #tasks: ModelTask[] = [];
  readonly #grants: Grant[] = [];

  constructor(core: CoreOnMemory) {
    this.#core = core;
    this.#model = new TaskModel(core.clock.nowMs());
  }

  async perform(act: Act): Promise<void> {
    await this.#perform(act);
    await this.compare(this.#tasks.slice(-COMPARED_TASKS));
  }

  /** What the core shows of the tasks must be what the model says. */
  async compare(tasks: readonly ModelTask[] = this.#tasks): Promise<void> {
    const inbox = await this.#core.inboxOf(LULU);
    for (const each of tasks) await this.#compare(each, inbox);
  }

  async #perform(act: Act): Promise<void> {
    const { clock, sweep } = this.#core;
    switch (act.act) {
      case "request":
        return this.#request(act.to, act.deadlineInMs);
      case "lease":
        return this.#lease(act.agent, act.worker);
      case "release":
      case "ack":
      case "requeue":
        return this.#letGo(act.act, fromNewest(this.#grants, act.pick));
      case "advance":
        clock.advance(act.ms);
        this.#model.nowMs = clock.nowMs();
        return;
      case "sweep":
        this.#model.sweep();
        await sweep.step();
        return;
      default: {
        const on = fromNewest(this.#tasks, act.task);
        return on === undefined ? undefined : this.#work(on, act);
      }
    }
  }

  async #work(on: ModelTask, act: Extract<Act, { readonly task: number }>): Promise<void> {
    const model = this.#model;
    if (act.act === "cancel") {
      return assert.equal(await this.#task("cancel", on, {}), model.cancel(on));
    }
    if (act.act === "followUp") return this.#followUp(on);
    if (act.act === "formerReply") return this.#formerReply(on);
    const leaseId = this.#leaseFor(on, act);
    const lease = leaseId === undefined ? {} : { lease_id: leaseId };
    switch (act.act) {
      case "status": {
        const outcome = await this.#task("reportStatus", on, { state: act.state, ...lease });
        return assert.equal(outcome, model.report(on, act.state, leaseId));
      }
      case "artifact": {
        const artifact = { artifactId: act.name, parts: [{ text: "…" }] };
        const outcome = await this.#task("addArtifact", on, { artifact, append: act.append, ...lease });
        return assert.equal(outcome, model.putArtifact(on, act.name, act.append, leaseId));
      }
      case "complete": {
        const outcome = await this.#task("complete", on, { text: act.words, ...lease });
        return assert.equal(outcome, model.end(on, "completed", act.words, leaseId));
      }
      case "fail":
      case "reject": {
        const outcome = await this.#task(act.act, on, { reason: act.words, ...lease });
        const state = act.act === "fail" ? "failed" : "rejected";
        return assert.equal(outcome, model.end(on, state, act.words, leaseId));
      }
      case "reply": {
        const outcome = await this.#answer(on, { type: "reply", body: act.words, ...lease });
        return assert.equal(outcome, model.end(on, "completed", `by message ${act.words}`, leaseId));
      }
      case "ask": {
        const outcome = await this.#answer(on, {
          type: "reply",
          needs_reply: true,
          body: "哪一个？",
          ...lease,
        });
        return assert.equal(outcome, model.report(on, "input-required", leaseId));
      }
      case "message":
        return this.#message(on, act.state, act.words, leaseId);
      case "handoff":
        return this.#handOff(on, leaseId);
    }
  }

  async #request(to: string, deadlineInMs: number | undefined): Promise<void> {
    const deadlineMs = deadlineInMs === undefined ? undefined : this.#model.nowMs + deadlineInMs;
    const deadline = deadlineMs === undefined ? {} : { deadline_ms: deadlineMs };
    const { receipt } = await this.#core.send({ to, type: "request", body: "帮我看看", ...deadline });
    const id = receipt.task_id ?? assert.fail("a request makes a task");
    this.#model.begin({ id, requester: LULU, assignee: to, messageId: receipt.message_id, deadlineMs });
    this.#tasks.push(this.#model.tasks.get(id) ?? assert.fail());
  }

  async #lease(agent: string, by: string): Promise<void> {
    const { mailboxes, operator } = this.#core;
    const { messages } = await mailboxes.lease(operator, agent, { worker: by });
    const [item] = messages;
    const free = [...this.#model.work.values()].filter(
      (work) => work.agent === agent && this.#model.mayLease(work, by),
    );
    if (item === undefined) return assert.equal(free.length, 0, "a free delivery was not leased");
    const work = this.#model.work.get(item.message_id);
    if (work === undefined) return assert.equal(item.sender_agent_id, "postmaster@relay");
    assert.ok(this.#model.mayLease(work, by), "a delivery was leased that is not free for this worker");
    this.#model.leased(work, item.lease.id, by);
    this.#grants.push({ messageId: work.id, leaseId: item.lease.id });
  }

  /** Acknowledging alone does not complete the task; releasing frees deliveries reserved for the worker. */
  async #letGo(act: "release" | "ack" | "requeue", grant: Grant | undefined): Promise<void> {
    const work = this.#model.work.get(grant?.messageId ?? "");
    if (grant === undefined || work?.state !== "leased" || work.leaseId !== grant.leaseId) return;
    const { mailboxes, operator, repairs } = this.#core;
    const leases = [{ message_id: grant.messageId, lease_id: grant.leaseId }];
    if (act === "ack") await mailboxes.ack(operator, work.agent, { leases });
    if (act === "release") await mailboxes.release(operator, work.agent, { leases });
    const command = { action: "requeue", duplicate_risk: "operator_accepted" };
    if (act === "requeue")
      await repairs.repair(operator, { message_id: work.id, reason: "it hangs", command });
    this.#model.letGo(work, act === "ack" ? "settled" : "available");
    if (act === "requeue") work.leaseId = undefined;
  }

  async #message(on: ModelTask, state: TaskState, said: string, leaseId: string | undefined): Promise<void> {
    const lease = leaseId === undefined ? {} : { lease_id: leaseId };
    const outcome = await this.#answer(on, { type: "status", task_state: state, body: said, ...lease });
    const by = `by status message ${said}`;
    const may = this.#model.mayFollowUp(on);
    const forbidden = (state === "canceled" || state === "submitted") && may === "ok";
    const isRevoked = this.#model.isRevoked(on, leaseId);
    if (forbidden) return assert.equal(outcome, isRevoked ? "lease_lost" : "invalid_argument");
    const expected = isTerminal(state)
      ? this.#model.end(on, state, by, leaseId)
      : this.#model.report(on, state, leaseId);
    assert.equal(outcome, expected);
  }

  async #handOff(on: ModelTask, leaseId: string | undefined): Promise<void> {
    const to = on.assignee === ZHIWEI ? KAMES : ZHIWEI;
    const expected = this.#model.mayHandOff(on, leaseId);
    const message = { from: on.assignee, to, type: "handoff", task_id: on.id, body: "交给你" } as const;
    const lease = leaseId === undefined ? {} : { lease_id: leaseId };
    const sent = this.#core.send({ ...message, ...lease });
    assert.equal(await outcomeOf(sent), expected);
    if (expected === "ok") this.#model.handOff(on, to, (await sent).receipt.message_id);
  }

  async #followUp(on: ModelTask): Promise<void> {
    const expected = this.#model.mayFollowUp(on);
    const sent = this.#core.send({ to: on.assignee, task_id: on.id, body: "还有一件事" });
    assert.equal(await outcomeOf(sent), expected);
    if (expected === "ok") this.#model.followUp(on, (await sent).receipt.message_id);
  }

  /** An agent that handed a task over can no longer change it. */
  async #formerReply(on: ModelTask): Promise<void> {
    for (const from of on.former) {
      const sent = this.#core.send({ from, to: LULU, type: "reply", task_id: on.id, body: "还是我来" });
      assert.equal(await outcomeOf(sent), "not_found");
    }
  }

  #answer(on: ModelTask, message: Readonly<Record<string, unknown>>): Promise<TaskOutcome> {
    return outcomeOf(this.#core.send({ from: on.assignee, to: LULU, reply_to: on.messageId, ...message }));
  }

  #task(
    verb: "reportStatus" | "addArtifact" | "complete" | "fail" | "reject" | "cancel",
    on: ModelTask,
    request: unknown,
  ): Promise<TaskOutcome> {
    return outcomeOf(this.#core.tasks[verb](this.#core.operator, on.id, request));
  }

  #leaseFor(on: ModelTask, { right, pick: index }: OnTask): string | undefined {
    if (right === "none") return undefined;
    if (right === "any") return fromNewest(this.#grants, index)?.leaseId;
    return this.#model.openWork(on).find((work) => work.state === "leased")?.leaseId;
  }

  async #compare(on: ModelTask, inbox: readonly MailboxItem[]): Promise<void> {
    const view = await this.#core.tasks.get(this.#core.operator, on.id);
    assert.deepEqual(
      [view.state, view.assignee, view.requester, view.handoffs.length, view.message_id],
      [on.state, on.assignee, LULU, on.handoffs, on.messageId],
    );
    assert.deepEqual(new Set(view.artifacts.map(({ artifactId }) => artifactId)), on.artifacts);
    const work = [...this.#model.work.values()].filter(({ taskId }) => taskId === on.id);
    for (const each of work) await this.#compareWork(each);
    const results = inbox.filter((item) => isResultOf(on.id, item));
    assert.equal(results.length, isTerminal(on.state) ? 1 : 0, "one result a task, and only at its end");
    assert.equal(view.result_message_id, results[0]?.message_id);
  }

  async #compareWork(work: ModelWork): Promise<void> {
    const [delivery] = await this.#core.store.deliveries.get(DEFAULT_TENANT, [work.id]);
    const state = delivery?.settledAtMs == null ? delivery?.state : "settled";
    assert.deepEqual([state, delivery?.leaseId ?? undefined], [work.state, work.leaseId]);
  }
}

describe("a history of tasks", () => {
  it("equals the model after any sequence of operations", async () => {
    const histories = fc.array(ACT, { minLength: 40, maxLength: 120, size: "max" });
    await fc.assert(
      fc.asyncProperty(histories, async (acts) => {
        await using core = await coreOnMemory();
        await core.agents.register(core.operator, { agent_id: KAMES });
        const history = new History(core);
        for (const act of acts) await history.perform(act);
        await history.compare();
        await assertOneEndEach(core);
      }),
      { numRuns: 60, plugins: [fc.interruptAfterTimeLimit(8_000)] },
    );
  });
});

/** At most one terminal change a task, read from the journal alone. */
async function assertOneEndEach(core: CoreOnMemory): Promise<void> {
  const ended = new Set<string>();
  for (const type of ["completed", "failed", "canceled", "rejected"]) {
    const { events } = await core.journal.events(core.operator, { type: `task.${type}`, limit: 500 });
    for (const { task_id } of events) {
      assert.ok(task_id !== undefined && !ended.has(task_id), `task ${task_id ?? ""} ended twice`);
      ended.add(task_id);
    }
  }
  assert.equal((await core.journal.verify(core.operator)).problem, undefined);
}

function isResultOf(taskId: string, { message }: MailboxItem): boolean {
  if (message.task_id !== taskId) return false;
  if (message.type === "reply") return !message.needs_reply;
  return message.type === "status" && isTerminal((message["task_state"] ?? "working") as TaskState);
}

async function outcomeOf(done: Promise<unknown>): Promise<TaskOutcome> {
  try {
    await done;
    return "ok";
  } catch (reason) {
    if (reason instanceof RelayError) return reason.code;
    throw reason;
  }
}

function fromNewest<Item>(items: readonly Item[], index: number): Item | undefined {
  return items.length === 0 ? undefined : items[items.length - 1 - (index % items.length)];
}
