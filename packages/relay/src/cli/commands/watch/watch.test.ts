import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CliRelay, LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

const NODE = process.execPath;

async function send(relay: CliRelay, body: string, type: "note" | "request" = "note"): Promise<string> {
  const { receipt } = await relay.client.send({ from: LULU, to: ZHIWEI, subject: "hello", body, type });
  return receipt.message_id;
}

describe("watch", () => {
  it("prints open messages and then new ones, as lines of JSON, until it is interrupted", async () => {
    await using relay = await openCliRelay();
    await send(relay, "before");
    const ending = new AbortController();
    let sent = false;
    const { code, stdout } = await relay.run(["watch", "--agent", ZHIWEI, "--ack", "--json"], {
      signal: ending.signal,
      onStdout: (text) => {
        if (text.includes("after")) ending.abort();
        else if (!sent) void send(relay, "after");
        sent = true;
      },
    });
    assert.equal(code, 130);
    const bodies = stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { message: { body: string } }).message.body);
    assert.deepEqual(bodies, ["before", "after"]);
  });

  it("ends after the first message with --once, and acknowledges only when told to", async () => {
    await using relay = await openCliRelay();
    await send(relay, "一");
    await send(relay, "二");
    assert.match(await relay.ok(["watch", "--agent", ZHIWEI, "--once"]), / {2}一\n/);
    assert.match(await relay.ok(["watch", "--agent", ZHIWEI, "--once", "--ack"]), / {2}一\n/);
    const { messages } = await relay.client.readMailbox(ZHIWEI);
    assert.deepEqual(
      messages.map(({ message }) => message.body),
      ["二"],
    );
  });
});

describe("watch --exec", () => {
  const exec = (code: string, ...flags: readonly string[]): readonly string[] => [
    "watch",
    "--agent",
    ZHIWEI,
    "--once",
    "--exec",
    ...flags,
    "--",
    NODE,
    "-e",
    code,
  ];

  it("acknowledges after exit code 0 and passes the program's output on", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "知微你好");
    const { code, stdout, stderr } = await relay.run(exec("process.stdin.pipe(process.stdout)"));
    assert.equal(code, 0, stderr);
    assert.equal((JSON.parse(stdout) as { body: string }).body, "知微你好");
    assert.equal(stderr, `${id}: acknowledged\n`);
    assert.equal((await relay.client.message(id)).delivery?.state, "acknowledged");
  });

  it("gives the message back after any other exit code, and says which", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "x");
    const { code, stdout } = await relay.run([...exec("console.log(1); process.exit(7)", "--json")]);
    assert.equal(code, 1);
    assert.deepEqual(JSON.parse(stdout), {
      message_id: id,
      outcome: "released",
      attempt: 1,
      why: "the program ended with exit code 7",
    });
    assert.equal((await relay.client.message(id)).delivery?.state, "available");
  });

  it("completes a task with what the program prints", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "x", "request");
    await relay.ok(exec("console.log('完成: ' + process.env.A2A_FROM)", "--reply"));
    const { task_id: taskId = "" } = await relay.client.message(id);
    assert.equal((await relay.client.task(taskId)).state, "completed");
    const { messages } = await relay.client.readMailbox(LULU);
    assert.equal(messages[0]?.message.body, `完成: ${LULU}`);
  });

  it("answers a note with what the program prints", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "x");
    await relay.ok(exec("console.log('thanks')", "--reply"));
    const { messages } = await relay.client.readMailbox(LULU);
    const { body, reply_to, subject } = messages[0]?.message ?? {};
    assert.deepEqual([body, reply_to, subject], ["thanks", id, "Re: hello"]);
    assert.equal((await relay.client.message(id)).delivery?.state, "acknowledged");
  });

  it("lets a program finish its task itself, with the lease it was given", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "x", "request");
    const code = `const { A2A_RELAY_URL: url, A2A_TASK_ID: id, A2A_LEASE_ID: lease_id } = process.env;
      fetch(url + "/tasks/" + id + "/complete", { method: "POST", headers: { "content-type": "application/json" },
        body: JSON.stringify({ text: "by itself", lease_id }) }).then((answer) => process.exit(answer.ok ? 0 : 1));`;
    await relay.run(exec(code));
    assert.equal((await relay.client.message(id)).delivery?.state, "acknowledged");
    assert.equal((await relay.client.readMailbox(LULU)).messages[0]?.message.body, "by itself");
  });

  it("ends a message for good at its last attempt, and its sender is told", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "x");
    await relay.run(exec("process.exit(1)", "--max-attempts", "1"));
    const { delivery } = await relay.client.message(id);
    assert.equal(delivery?.state, "dead");
    assert.match(delivery?.reason ?? "", /exit code 1 at attempt 1/);
  });

  it("refuses messages of other senders with a notice and never runs the program for them", async () => {
    await using relay = await openCliRelay();
    await relay.client.register({ agent_id: "mallory@x" });
    const { receipt } = await relay.client.send({ from: "mallory@x", to: ZHIWEI, body: "run me" });
    const { stdout } = await relay.run(exec("console.log('ran')", "--allow-from", "lulu"));
    assert.equal(stdout, "");
    const { delivery } = await relay.client.message(receipt.message_id);
    assert.equal(delivery?.state, "dead");
    assert.equal(delivery?.reason, "sender not allowed: mallory@x");
  });

  it("renews the lease while the program runs, and gives the message back when interrupted", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "x");
    const ending = new AbortController();
    const running = relay.run(
      exec("console.log('up'); setInterval(() => {}, 1000)", "--lease", "150ms", "--max-attempts", "1"),
      {
        signal: ending.signal,
        onStdout: () => void untilRenewed(relay, id).finally(() => ending.abort()),
      },
    );
    assert.equal((await running).code, 130);
    assert.equal((await relay.client.message(id)).delivery?.state, "available");
  });

  it("ends the program at its time limit", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "x");
    const { code, stderr } = await relay.run(exec("setInterval(() => {}, 1000)", "--timeout", "50ms"));
    assert.equal(code, 1);
    assert.equal(stderr, `${id}: released, the program was ended by its time limit\n`);
  });

  it("ends the program when the message is taken away from it", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "x");
    const command = { action: "requeue", duplicate_risk: "operator_accepted" } as const;
    const { code, stderr } = await relay.run(
      exec("console.log('up'); setInterval(() => {}, 1000)", "--lease", "150ms"),
      { onStdout: () => void relay.client.repair({ message_id: id, reason: "test", command }) },
    );
    assert.equal(code, 1);
    assert.match(stderr, /^\S+: ended its program: .*\n$/);
    assert.equal((await relay.client.message(id)).delivery?.state, "available");
  });

  it("gives the message back and ends when there is no such program", async () => {
    await using relay = await openCliRelay();
    const id = await send(relay, "x");
    const { code, stderr } = await relay.run([
      "watch",
      "--agent",
      ZHIWEI,
      "--exec",
      "--",
      "./no-such-program",
    ]);
    assert.equal(code, 1);
    assert.match(stderr, /error: cannot start "\.\/no-such-program"/);
    assert.equal((await relay.client.message(id)).delivery?.state, "available");
  });
});

/** Resolves once the lease was extended twice past its first end. */
async function untilRenewed(relay: CliRelay, id: string): Promise<void> {
  const ends = new Set<string>();
  while (ends.size < 3) {
    const { delivery } = await relay.client.message(id);
    if (delivery?.lease?.expires_at !== undefined) ends.add(delivery.lease.expires_at);
  }
}
