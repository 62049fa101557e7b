import { setTimeout as sleep } from "node:timers/promises";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { messageTo } from "../../load/messages.ts";
import { MicroBatch } from "./micro-batch.ts";
import type { PostgresQueue } from "./postgres-queue.ts";

const TASK = "read";

/** As its documentation measures it: a local queue that fetches many jobs at a time, and completions in batches. */
const WORKER = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};

interface Payload {
  readonly number: number;
}

/** graphile-worker: a job of a message is done as soon as the worker has it. */
export async function openGraphileWorker(url: string): Promise<PostgresQueue> {
  const worker = { ...WORKER, connectionString: url, logger: new Logger(() => () => undefined) };
  const utils = await makeWorkerUtils({ preset: { worker } });
  await utils.migrate();
  const inserts = new MicroBatch<number, undefined>(async (numbers) => {
    const specs = numbers.map((number) => ({
      identifier: TASK,
      payload: { ...messageTo(number), number },
    }));
    await utils.addJobs(specs);
    return numbers.map(() => undefined);
  });
  const waiting = new Map<number, () => void>();
  const read = (payload: unknown): void => waiting.get((payload as Payload).number)?.();
  let reader: Promise<unknown> | undefined;
  return {
    send: (number) => inserts.submit(number),
    roundTrip: async (number) => {
      reader ??= run({ preset: { worker }, taskList: { [TASK]: read }, noHandleSignals: true });
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.set(number, resolve);
      await inserts.submit(number);
      await promise;
      waiting.delete(number);
    },
    // A job that is done is removed later, and the library does not say when.
    settle: async () => {
      const left = "select from graphile_worker._private_jobs limit 1";
      while ((await utils.withPgClient((client) => client.query(left))).rowCount !== 0) await sleep(1);
    },
  };
}
