import { PgBoss } from "pg-boss";
import { messageTo } from "../../load/messages.ts";
import { MicroBatch } from "./micro-batch.ts";
import type { PostgresQueue } from "./postgres-queue.ts";

const QUEUE = "messages";

/** pg-boss with its defaults: one queue, and each verb for many jobs at a time. */
export async function openPgBoss(url: string): Promise<PostgresQueue> {
  const boss = await new PgBoss(url).start();
  await boss.createQueue(QUEUE);
  const inserts = new MicroBatch<object, undefined>(async (messages) => {
    const jobs = messages.map((data) => ({ data }));
    await boss.insert(QUEUE, jobs);
    return messages.map(() => undefined);
  });
  const fetches = new MicroBatch<undefined, string>(async (asked) => {
    const jobs = await boss.fetch(QUEUE, { batchSize: asked.length });
    return jobs.map(({ id }) => id);
  });
  const completions = new MicroBatch<string, undefined>(async (ids) => {
    await boss.complete(QUEUE, [...ids]);
    return ids.map(() => undefined);
  });
  const send = (number: number): Promise<void> => inserts.submit(messageTo(number));
  return {
    send,
    roundTrip: async (number) => {
      await send(number);
      await completions.submit(await fetches.submit(undefined));
    },
  };
}
