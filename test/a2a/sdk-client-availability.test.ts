import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, it } from "node:test";
import { childEnv } from "../support/child-env.ts";
import { A2aRelay } from "../support/a2a-relay.ts";
import { Follower } from "../support/follower.ts";
import { MailboxAgent } from "../support/mailbox-agent.ts";
import { type EventJson, SDK_CLIENTS, SdkClient, userMessage } from "../support/sdk-client.ts";

const ZHIWEI = "zhiwei@known-blocks1";
const PROGRAM = join(import.meta.dirname, "crashing-agent-process.ts");
const WAIT_MS = 20_000;

const stateIn = ({ task, statusUpdate }: EventJson): string | undefined =>
  (task ?? statusUpdate)?.status.state ?? "artifact";

for (const kind of SDK_CLIENTS) {
  describe(
    `an agent that is away, asked by the official client over ${kind.name}`,
    { timeout: 30_000 },
    () => {
      it("is not waited for longer than the relay's patience, and answers when it comes back", async () => {
        await using relay = await A2aRelay.open({ env: { A2A_RELAY_A2A_BLOCK_MS: "100" } });
        await relay.register(ZHIWEI);
        const client = await SdkClient.open(relay, ZHIWEI, kind);
        const { task } = await client.send(userMessage("在吗？"));
        assert.equal(task?.status.state, "TASK_STATE_SUBMITTED");
        const work = await MailboxAgent.next(relay, ZHIWEI);
        assert.equal(work.text, "在吗？");
        await work.complete({ text: "刚回来" });
        const done = await client.get(task.id);
        assert.equal(done.status.state, "TASK_STATE_COMPLETED");
        assert.equal(done.status.message?.parts[0]?.["text"], "刚回来");
      });

      it("is followed until it comes back, across a restart of the relay", async () => {
        await using relay = await A2aRelay.open();
        await relay.register(ZHIWEI);
        const before = await SdkClient.open(relay, ZHIWEI, kind);
        const sent = await before.send({
          ...userMessage("晚点说"),
          configuration: { returnImmediately: true },
        });
        const id = sent.task?.id ?? "";
        {
          await using first = new Follower(({ signal }) => before.subscribe(id, { signal }));
          await first.sees(1, WAIT_MS);
        }
        await relay.restart();
        const client = await SdkClient.open(relay, ZHIWEI, kind);
        await using second = new Follower(({ signal }) => client.subscribe(id, { signal }));
        await second.sees(1, WAIT_MS);
        await (await MailboxAgent.next(relay, ZHIWEI)).complete({ text: "来了" });
        assert.equal(await second.ended, undefined);
        assert.deepEqual(second.seen.map(stateIn), ["TASK_STATE_SUBMITTED", "TASK_STATE_COMPLETED"]);
      });

      it("does not hold the relay back when it stops", async () => {
        const relay = await A2aRelay.open();
        await relay.register(ZHIWEI);
        const client = await SdkClient.open(relay, ZHIWEI, kind);
        await using watching = new Follower(({ signal }) => client.stream(userMessage("等着"), { signal }));
        await watching.sees(1, WAIT_MS);
        const waiting = client.send(userMessage("也等着"));
        const startedMs = performance.now();
        await MailboxAgent.next(relay, ZHIWEI);
        await MailboxAgent.next(relay, ZHIWEI);
        await relay[Symbol.asyncDispose]();
        assert.ok(performance.now() - startedMs < 5_000, "it waited for its callers");
        assert.equal((await waiting).task?.status.state, "TASK_STATE_SUBMITTED");
        const why = await watching.ended;
        // Over HTTP the stream just ends, as for browsers; gRPC has a status for it.
        if (kind.binding === "GRPC") assert.match(String(why), /the relay is stopping/);
      });
    },
  );
}

/** The agent's own process; none may outlive this test. */
class AgentProcess implements AsyncDisposable {
  readonly #child: ChildProcess;

  constructor(url: string, agentId: string) {
    this.#child = spawn(process.execPath, ["--conditions=source", PROGRAM, url, agentId], {
      env: childEnv(),
      stdio: ["ignore", "ignore", "inherit"],
    });
    process.once("exit", () => this.#child.kill("SIGKILL"));
  }

  /** Without a word of warning. */
  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "close");
    if (this.#child.exitCode !== null || !this.#child.kill("SIGKILL")) return;
    await ended;
  }
}

describe("an agent that is killed in the middle", { timeout: 60_000 }, () => {
  it("and started again finishes what every official client asked for, on the same streams", async () => {
    await using relay = await A2aRelay.open();
    await relay.register(ZHIWEI);
    const followers: Follower<EventJson>[] = [];
    for (const kind of SDK_CLIENTS) {
      const client = await SdkClient.open(relay, ZHIWEI, kind);
      followers.push(new Follower(({ signal }) => client.stream(userMessage(kind.name), { signal })));
    }
    {
      await using _ = new AgentProcess(relay.url, ZHIWEI);
      // The task, half an artifact, and that it works on it.
      for (const follower of followers) await follower.sees(3, WAIT_MS);
    }
    await using _ = new AgentProcess(relay.url, ZHIWEI);
    for (const [index, follower] of followers.entries()) {
      assert.equal(await follower.ended, undefined);
      const states = follower.seen.map(stateIn);
      assert.deepEqual(
        [states[0], states[1], states.at(-1)],
        ["TASK_STATE_SUBMITTED", "artifact", "TASK_STATE_COMPLETED"],
      );
      const said = follower.seen.at(-1)?.statusUpdate?.status.message?.parts[0]?.["text"];
      assert.equal(said, `第2次才做完：${SDK_CLIENTS[index]?.name}`);
    }
  });
});
