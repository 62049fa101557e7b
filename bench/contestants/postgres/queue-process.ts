import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { closedLoop, type LoopResult } from "../../load/closed-loop.ts";
import type { CallOrder, PostgresQueue, QueueName } from "./postgres-queue.ts";

// A program with callers of its own: they call the queue in this process. Over HTTP come only the orders, one a round.
const [name = "", url = "", directory = ""] = process.argv.slice(2);

/** Each is loaded only where it is measured. */
const OPEN: Readonly<Record<QueueName, () => Promise<PostgresQueue>>> = {
  relay: async () => (await import("./relay-queue.ts")).openRelay(url, directory),
  "pg-boss": async () => (await import("./pg-boss-queue.ts")).openPgBoss(url),
  "graphile-worker": async () => (await import("./graphile-worker-queue.ts")).openGraphileWorker(url),
};

const queue = await OPEN[name as QueueName]();

const server = createServer((request, response) => {
  void json(request)
    .then((order) => run(order as CallOrder))
    .then(
      (result) => answer(200, result),
      (reason: unknown) => answer(500, { error: String(reason) }),
    );
  const answer = (status: number, body: object): void => {
    const bytes = Buffer.from(JSON.stringify(body));
    response.writeHead(status, { "content-type": "application/json", "content-length": bytes.length });
    response.end(bytes);
  };
});

async function run({ act, callers, end }: CallOrder): Promise<LoopResult> {
  const start = performance.now();
  const { cycles } = await closedLoop(Array.from({ length: callers }), end, (_, number) =>
    queue[act](number),
  );
  if (act === "roundTrip") await queue.settle?.();
  return { cycles, elapsedMs: performance.now() - start };
}

server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  console.log(`listening http://127.0.0.1:${port}`);
});
process.once("SIGTERM", () => process.exit(0));
