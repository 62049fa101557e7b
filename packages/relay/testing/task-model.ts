import { isTerminal, type RelayErrorCode, type TaskState } from "@a2a-relay/protocol";

export type TaskOutcome = "ok" | RelayErrorCode;

/** A message about a task in the mailbox of its assignee. */
export interface ModelWork {
  readonly id: string;
  readonly taskId: string;
  readonly agent: string;
  state: "available" | "leased" | "settled";
  attempts: number;
  /** Of the current or the last lease; undefined once an operator ended it. */
  leaseId: string | undefined;
  worker: string | undefined;
  reservedFor: string | undefined;
}

export interface ModelTask {
  readonly id: string;
  readonly requester: string;
  readonly deadlineMs: number | undefined;
  readonly artifacts: Set<string>;
  assignee: string;
  /** Every agent that worked on it before. */
  readonly former: Set<string>;
  messageId: string;
  state: TaskState;
  /** The accepted ending; the same one again is accepted. */
  ending: string | undefined;
  handoffs: number;
}

/** A second, simple implementation of the rules of tasks. */
export class TaskModel {
  readonly tasks = new Map<string, ModelTask>();
  readonly work = new Map<string, ModelWork>();
  nowMs: number;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  begin(task: Pick<ModelTask, "id" | "requester" | "assignee" | "messageId" | "deadlineMs">): void {
    this.tasks.set(task.id, {
      ...task,
      artifacts: new Set(),
      former: new Set(),
      state: "submitted",
      ending: undefined,
      handoffs: 0,
    });
    this.#deliver(task.id, task.messageId, task.assignee, undefined);
  }

  openWork(task: ModelTask): readonly ModelWork[] {
    return [...this.work.values()].filter(
      (work) => work.taskId === task.id && work.agent === task.assignee && work.state !== "settled",
    );
  }

  /** Whether the worker may lease this message now. */
  mayLease(work: ModelWork, worker: string): boolean {
    return work.state === "available" && (work.reservedFor === undefined || work.reservedFor === worker);
  }

  leased(work: ModelWork, leaseId: string, worker: string): void {
    const attempts = work.attempts + 1;
    Object.assign(work, { state: "leased", attempts, leaseId, worker } satisfies Partial<ModelWork>);
  }

  /** The message is acknowledged or released; messages reserved for this worker are free. */
  letGo(work: ModelWork, state: "available" | "settled"): void {
    Object.assign(work, { state, worker: undefined, reservedFor: undefined } satisfies Partial<ModelWork>);
    for (const other of this.work.values()) {
      if (other.taskId === work.taskId && other.state !== "settled") other.reservedFor = undefined;
    }
  }

  /** Working on it: status and artifacts. */
  mayWork(task: ModelTask, leaseId: string | undefined): TaskOutcome {
    if (this.isRevoked(task, leaseId)) return "lease_lost";
    if (task.state === "canceled") return "task_canceled";
    if (isTerminal(task.state)) return "task_finished";
    if (this.isOverdue(task)) return "task_finished";
    return this.#holds(task, leaseId);
  }

  /** An operator ended the last lease, and the caller shows one. */
  isRevoked(task: ModelTask, leaseId: string | undefined): boolean {
    const asking = this.work.get(task.messageId);
    const wasEnded = asking !== undefined && asking.attempts > 0 && asking.leaseId === undefined;
    return wasEnded && leaseId !== undefined;
  }

  report(task: ModelTask, state: TaskState, leaseId: string | undefined): TaskOutcome {
    const may = this.mayWork(task, leaseId);
    if (may === "ok") task.state = state;
    return may;
  }

  putArtifact(task: ModelTask, artifact: string, append: boolean, leaseId: string | undefined): TaskOutcome {
    const may = this.mayWork(task, leaseId);
    if (may !== "ok") return may;
    if (append && !task.artifacts.has(artifact)) return "not_found";
    task.artifacts.add(artifact);
    return "ok";
  }

  end(task: ModelTask, state: TaskState, words: string, leaseId: string | undefined): TaskOutcome {
    const ending = `${state} ${words}`;
    if (task.ending === ending) return "ok";
    const may = this.mayWork(task, leaseId);
    if (may === "ok") this.#finish(task, state, ending);
    return may;
  }

  cancel(task: ModelTask): TaskOutcome {
    if (task.state === "canceled") return "ok";
    if (isTerminal(task.state)) return "task_finished";
    this.#finish(task, "canceled", "canceled");
    return "ok";
  }

  mayHandOff(task: ModelTask, leaseId: string | undefined): TaskOutcome {
    const may = this.mayWork(task, leaseId);
    const isUnread = (work: ModelWork): boolean =>
      work.state === "available" && work.attempts === 0 && work.id !== task.messageId;
    return may === "ok" && this.openWork(task).some(isUnread) ? "wrong_state" : may;
  }

  handOff(task: ModelTask, to: string, messageId: string): void {
    this.#settleWork(task);
    task.former.add(task.assignee);
    task.former.delete(to);
    Object.assign(task, { assignee: to, messageId, state: "submitted" } satisfies Partial<ModelTask>);
    task.handoffs += 1;
    this.#deliver(task.id, messageId, to, undefined);
  }

  mayFollowUp(task: ModelTask): TaskOutcome {
    if (task.state === "canceled") return "task_canceled";
    return isTerminal(task.state) || this.isOverdue(task) ? "task_finished" : "ok";
  }

  followUp(task: ModelTask, messageId: string): void {
    const holder = this.openWork(task).find((work) => work.state === "leased");
    if (task.state === "input-required" || task.state === "auth-required") task.state = "working";
    this.#deliver(task.id, messageId, task.assignee, holder?.worker);
  }

  sweep(): void {
    for (const task of this.tasks.values()) {
      if (!isTerminal(task.state) && this.isOverdue(task)) this.#finish(task, "failed", "overdue");
    }
  }

  isOverdue(task: ModelTask): boolean {
    return task.deadlineMs !== undefined && task.deadlineMs <= this.nowMs;
  }

  #holds(task: ModelTask, leaseId: string | undefined): TaskOutcome {
    const open = this.openWork(task);
    const leased = open.filter((work) => work.state === "leased");
    if (leased.length > 0) {
      if (leaseId === undefined) return "lease_required";
      return leased.some((work) => work.leaseId === leaseId) ? "ok" : "lease_lost";
    }
    const asking = this.work.get(task.messageId);
    const all = asking === undefined ? open : [asking, ...open];
    if (leaseId === undefined || all.every((work) => work.attempts === 0)) return "ok";
    return all.some((work) => work.leaseId === leaseId) ? "ok" : "lease_lost";
  }

  #finish(task: ModelTask, state: TaskState, ending: string): void {
    this.#settleWork(task);
    Object.assign(task, { state, ending } satisfies Partial<ModelTask>);
  }

  #settleWork(task: ModelTask): void {
    for (const work of this.openWork(task)) work.state = "settled";
  }

  #deliver(taskId: string, id: string, agent: string, reservedFor: string | undefined): void {
    this.work.set(id, {
      id,
      taskId,
      agent,
      state: "available",
      attempts: 0,
      leaseId: undefined,
      worker: undefined,
      reservedFor,
    });
  }
}
