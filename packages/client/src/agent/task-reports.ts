import {
  RelayError,
  type RelayErrorCode,
  type TaskArtifactRequest,
  type TaskStatusRequest,
  type TaskView,
} from "@a2a-relay/protocol";
import type { RelayClient } from "../client/relay-client.ts";
import { isAway, type RetryDelays, untilReached } from "../http/retry.ts";
import type { BackgroundErrors } from "./background-errors.ts";
import type { LeasedMessage } from "./lease-renewal.ts";

export interface TaskReportsParts {
  readonly client: RelayClient;
  readonly errors: BackgroundErrors;
  readonly delays: RetryDelays;
  readonly leased: LeasedMessage;
  readonly view: TaskView;
}

const END_CODES: ReadonlySet<RelayErrorCode> = new Set(["lease_lost", "task_canceled", "task_finished"]);

/**
 * Reports the progress of a task to the relay, one report after the other, in the order of the calls. Waits for an
 * unreachable relay, and does not repeat a report whose answer got lost.
 */
export class TaskReports {
  readonly #parts: TaskReportsParts;
  /** How many parts each artifact has. Only this worker adds some, because it holds the lease. */
  readonly #partCounts = new Map<string, number>();
  #lastReport: Promise<unknown> = Promise.resolve();

  constructor(parts: TaskReportsParts) {
    this.#parts = parts;
    this.#count(parts.view);
  }

  hasArtifact(artifactId: string): boolean {
    return this.#partCounts.has(artifactId);
  }

  /** Dropped while the relay is unreachable. */
  async tryStatus(request: TaskStatusRequest): Promise<void> {
    const { errors, leased } = this.#parts;
    try {
      await this.#inOrder(() => this.#guard(this.#sendStatus(request)));
    } catch (reason) {
      if (leased.signal.aborted || !isAway(reason)) throw reason;
      errors.report(reason, "report");
    }
  }

  async status(request: TaskStatusRequest): Promise<void> {
    const { state } = request;
    // Only a changed state proves that the relay got it, and the task was `working` before.
    const wasReceived = async (): Promise<boolean> =>
      state !== "working" && (await this.#task()).state === state;
    await this.#inOrder(() => this.#untilReceived(() => this.#sendStatus(request), wasReceived));
  }

  async artifact(artifactId: string, request: TaskArtifactRequest): Promise<void> {
    const { client, leased } = this.#parts;
    await this.#inOrder(async () => {
      const before = this.#partCounts.get(artifactId) ?? 0;
      const send = async (): Promise<void> => {
        this.#count(await client.addArtifact(this.#id, { ...request, ...this.#lease }, leased));
      };
      const wasReceived = async (): Promise<boolean> => {
        // Replacing an artifact twice is harmless.
        if (request.append !== true) return false;
        this.#count(await this.#task());
        return this.#partCounts.get(artifactId) !== before;
      };
      await this.#untilReceived(send, wasReceived);
    });
  }

  async #sendStatus(request: TaskStatusRequest): Promise<void> {
    const { client, leased } = this.#parts;
    await client.reportStatus(this.#id, { ...request, ...this.#lease }, leased);
  }

  #task(): Promise<TaskView> {
    const { client, leased } = this.#parts;
    return client.task(this.#id, leased);
  }

  async #untilReceived(send: () => Promise<void>, wasReceived: () => Promise<boolean>): Promise<void> {
    const { delays, errors, leased } = this.#parts;
    let isTried = false;
    const attempt = async (): Promise<void> => {
      if (isTried && (await wasReceived())) return;
      isTried = true;
      await send();
    };
    const onAway = (error: RelayError): void => errors.report(error, "report");
    await this.#guard(untilReached(attempt, { signal: leased.signal, delays, onAway }));
    errors.recovered("report");
  }

  /** A failed report does not stop the next one. */
  #inOrder(act: () => Promise<void>): Promise<void> {
    const report = this.#lastReport.then(act);
    this.#lastReport = report.catch(() => undefined);
    return report;
  }

  /** A refusal that ends the work also aborts its signal. */
  async #guard(report: Promise<unknown>): Promise<void> {
    try {
      await report;
    } catch (reason) {
      if (reason instanceof RelayError && END_CODES.has(reason.code)) this.#parts.leased.lose(reason);
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
    return { lease_id: this.#parts.leased.item.lease.id };
  }
}
