import { RelayError, type RelayErrorCode, type TaskArtifactRequest, type TaskStatusRequest, type TaskView } from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { isAway, type RetryDelays, untilReached } from "../http/retry.ts";
import type { BackgroundErrors } from "./background-errors.ts";
import type { LeasedMessage } from "./lease-renewal.ts";

export interface TaskReportsParts {
  readonly client: RelayClient;
  readonly errors: BackgroundErrors;
  readonly delays: RetryDelays;
  readonly mail: LeasedMessage;
  readonly view: TaskView;
}

const END_CODES: ReadonlySet<RelayErrorCode> = new Set(["lease_lost", "task_canceled", "task_finished"]);

/**
 * Tells the relay how a task stands while it is worked on: one thing after the other, in the order in which they were
 * said. A relay that is away is waited for, and what it heard although its answer got lost is not told again.
 */
export class TaskReports {
  readonly #parts: TaskReportsParts;
  /** How many parts each artifact has: only this worker adds to them, because it holds the lease. */
  readonly #partCounts = new Map<string, number>();
  #line: Promise<unknown> = Promise.resolve();

  constructor(parts: TaskReportsParts) {
    this.#parts = parts;
    this.#count(parts.view);
  }

  /** Whether there is an artifact of this id, from this turn or from one before. */
  hasArtifact(artifactId: string): boolean {
    return this.#partCounts.has(artifactId);
  }

  /** For what is of use only now: dropped where the relay is away. */
  async tryStatus(request: TaskStatusRequest): Promise<void> {
    const { errors, mail } = this.#parts;
    try {
      await this.#inLine(() => this.#guard(this.#tellStatus(request)));
    } catch (reason) {
      if (mail.signal.aborted || !isAway(reason)) throw reason;
      errors.report(reason, "report");
    }
  }

  async status(request: TaskStatusRequest): Promise<void> {
    const { state } = request;
    // Only the state shows that it was heard, and the one to work on is there before.
    const wasHeard = async (): Promise<boolean> =>
      state !== "working" && (await this.#look()).state === state;
    await this.#inLine(() => this.#untilHeard(() => this.#tellStatus(request), wasHeard));
  }

  async artifact(artifactId: string, request: TaskArtifactRequest): Promise<void> {
    const { client, mail } = this.#parts;
    await this.#inLine(async () => {
      const before = this.#partCounts.get(artifactId) ?? 0;
      const tell = async (): Promise<void> => {
        this.#count(await client.addArtifact(this.#id, { ...request, ...this.#lease }, mail));
      };
      const wasHeard = async (): Promise<boolean> => {
        // Putting it twice is putting it once.
        if (request.append !== true) return false;
        this.#count(await this.#look());
        return this.#partCounts.get(artifactId) !== before;
      };
      await this.#untilHeard(tell, wasHeard);
    });
  }

  async #tellStatus(request: TaskStatusRequest): Promise<void> {
    const { client, mail } = this.#parts;
    await client.reportStatus(this.#id, { ...request, ...this.#lease }, mail);
  }

  #look(): Promise<TaskView> {
    const { client, mail } = this.#parts;
    return client.task(this.#id, mail);
  }

  async #untilHeard(tell: () => Promise<void>, wasHeard: () => Promise<boolean>): Promise<void> {
    const { delays, errors, mail } = this.#parts;
    let isTried = false;
    const attempt = async (): Promise<void> => {
      if (isTried && (await wasHeard())) return;
      isTried = true;
      await tell();
    };
    const onAway = (error: RelayError): void => errors.report(error, "report");
    await this.#guard(untilReached(attempt, { signal: mail.signal, delays, onAway }));
    errors.recovered("report");
  }

  /** What failed before does not keep what comes after from being told. */
  #inLine(act: () => Promise<void>): Promise<void> {
    const turn = this.#line.then(act);
    this.#line = turn.catch(() => undefined);
    return turn;
  }

  /** A refusal that means the end of the work is the end of the work, also for whoever watches its signal. */
  async #guard(report: Promise<unknown>): Promise<void> {
    try {
      await report;
    } catch (reason) {
      if (reason instanceof RelayError && END_CODES.has(reason.code)) this.#parts.mail.lose(reason);
      throw reason;
    }
  }

  #count({ artifacts }: TaskView): void {
    for (const { artifactId, parts } of artifacts) this.#partCounts.set(artifactId, parts.length);
  }

  get #id(): string {
    return this.#parts.view.id;
  }

  get #lease(): { readonly lease_id: string } {
    return { lease_id: this.#parts.mail.item.lease.id };
  }
}
