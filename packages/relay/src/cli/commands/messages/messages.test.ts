import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LULU, openCliRelay, ZHIWEI } from "../../../../testing/cli-relay.ts";

const HELLO = ["send", "--from", LULU, "--to", "zhiwei", "--subject", "hello", "--body", "知微你好"];

describe("send", () => {
  it("prints who will get it, and under which ids", async () => {
    await using relay = await openCliRelay();
    const stdout = await relay.ok([...HELLO, "--type", "request", "--needs-reply"]);
    assert.match(stdout, /^accepted for zhiwei@known-blocks1: msg_\S+\nthread thread_\S+ {2}task \S+\n$/);
  });

  it("carries every option in the message", async () => {
    await using relay = await openCliRelay();
    const about = ["--type", "request", "--urgency", "high", "--needs-reply", "--thread-id", "t-1"];
    const expires = new Date(Date.now() + 86_400_000).toISOString();
    const times = ["--deadline", "2h", "--expires", expires];
    const key = ["--idempotency-key", "k-1", "--idempotent"];
    const { message } = (await relay.json([...HELLO, ...about, ...times, ...key])) as {
      readonly message: Record<string, unknown>;
    };
    assert.equal(message["body"], "知微你好");
    assert.deepEqual(message["idempotency"], { duplicate_safety: "idempotent", key: "k-1" });
    assert.equal(message["thread_id"], "t-1");
    assert.equal(message["urgency"], "high");
    assert.equal(message["needs_reply"], true);
    assert.equal(message["expires_at"], expires);
    assert.ok(Math.abs(Number(message["deadline_ms"]) - Date.now() - 7_200_000) < 60_000);
  });

  it("reads the body from stdin", async () => {
    await using relay = await openCliRelay();
    await relay.ok(["send", "--from", LULU, "--to", ZHIWEI, "--body", "-"], { stdin: "第一行\n第二行\n" });
    const { messages } = await relay.client.readMailbox(ZHIWEI);
    assert.equal(messages[0]?.message.body, "第一行\n第二行");
  });

  it("says on stderr why the relay refused, and exits with 1", async () => {
    await using relay = await openCliRelay();
    const { code, stdout, stderr } = await relay.run([
      "send",
      "--from",
      LULU,
      "--to",
      "nobody",
      "--body",
      "x",
    ]);
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /^error: to: nobody is registered as "nobody".*\n {2}`a2a-relay agents` lists/);
  });

  it("names the candidates of an ambiguous recipient", async () => {
    await using relay = await openCliRelay();
    for (const id of ["a@x", "b@x"]) await relay.client.register({ agent_id: id, display_name: "twin" });
    const { code, stderr } = await relay.run(["send", "--from", LULU, "--to", "twin", "--body", "x"]);
    assert.equal(code, 1);
    assert.match(stderr, /a@x.*b@x/s);
  });
});

describe("inbox and pending", () => {
  it("list mail without marking it", async () => {
    await using relay = await openCliRelay();
    await relay.ok(HELLO);
    for (const command of ["inbox", "pending"]) {
      const stdout = await relay.ok([command, "--agent", "zhiwei"]);
      assert.match(
        stdout,
        /^ID +AGE +FROM +TYPE +STATUS +SUBJECT\nmsg_\S+ +\S+ +lulu@kamac +note +pending +hello\n$/,
      );
    }
    const { messages } = await relay.client.readMailbox(ZHIWEI, { peek: true });
    assert.equal(messages[0]?.status, "PENDING");
  });

  it("say so when there is none", async () => {
    await using relay = await openCliRelay();
    assert.equal(await relay.ok(["inbox", "--agent", ZHIWEI]), "no open mail\n");
    assert.deepEqual((await relay.json(["inbox", "--agent", ZHIWEI]))["messages"], []);
  });
});

describe("poll", () => {
  it("prints bodies and leaves the mail until it is told to acknowledge", async () => {
    await using relay = await openCliRelay();
    await relay.ok(HELLO);
    assert.match(await relay.ok(["poll", "--agent", ZHIWEI]), /\nhello\n.*\n {2}知微你好\n/);
    assert.match(await relay.ok(["poll", "--agent", ZHIWEI, "--ack"]), /知微你好/);
    assert.equal(await relay.ok(["poll", "--agent", ZHIWEI, "--ack"]), "no open mail\n");
  });

  it("takes only what is allowed, also from behind what is not", async () => {
    await using relay = await openCliRelay();
    await relay.client.register({ agent_id: "mallory@x" });
    for (let count = 0; count < 3; count += 1) {
      await relay.ok(["send", "--from", "mallory@x", "--to", ZHIWEI, "--body", "spam"]);
    }
    await relay.ok([...HELLO, "--type", "alert"]);
    await relay.ok(HELLO);
    const filter = ["--allow-from", "lulu", "--allowed-type", "note", "--allowed-type", "reply"];
    const answer = await relay.json(["poll", "--agent", ZHIWEI, "--limit", "2", "--ack", ...filter]);
    assert.equal(answer["count"], 1);
    const { messages } = await relay.client.readMailbox(ZHIWEI);
    assert.deepEqual(
      messages.map(({ message }) => `${message.from} ${message.type}`),
      ["mallory@x note", "mallory@x note", "mallory@x note", "lulu@kamac alert"],
    );
  });

  it("takes nothing when an allowed sender does not exist", async () => {
    await using relay = await openCliRelay();
    await relay.ok(HELLO);
    const { code } = await relay.run(["poll", "--agent", ZHIWEI, "--ack", "--allow-from", "lulu@typo"]);
    assert.equal(code, 1);
    assert.equal((await relay.client.readMailbox(ZHIWEI, { peek: true })).messages[0]?.status, "PENDING");
  });

  it("waits for mail when asked to", async () => {
    await using relay = await openCliRelay();
    const polled = relay.json(["poll", "--agent", ZHIWEI, "--wait", "20s"]);
    await relay.ok(HELLO);
    assert.equal((await polled)["count"], 1);
  });

  it("lets no message steer the terminal", async () => {
    await using relay = await openCliRelay();
    const body = "\u001b]0;owned\u0007\u001b[2J";
    await relay.client.send({ from: LULU, to: ZHIWEI, subject: "a\u001b[31m", body });
    for (const command of ["poll", "inbox"]) {
      const stdout = await relay.ok([command, "--agent", ZHIWEI, "--no-color"], { columns: 200 });
      assert.ok(!stdout.includes("\u001b"), stdout);
    }
  });
});

describe("wait", () => {
  it("exits with 0 as soon as there is mail", async () => {
    await using relay = await openCliRelay();
    const waiting = relay.ok(["wait", "--agent", "zhiwei", "--timeout", "20s"]);
    await relay.ok(HELLO);
    assert.equal(await waiting, "mail for zhiwei: note from lulu@kamac: hello\n");
  });

  it("exits with 3 when the time is over", async () => {
    await using relay = await openCliRelay();
    const { code, stdout } = await relay.run(["wait", "--agent", ZHIWEI, "--timeout", "10ms", "--json"]);
    assert.equal(code, 3);
    assert.deepEqual(JSON.parse(stdout), { mail: false, count: 0, cursor: "0" });
  });
});

describe("ack", () => {
  it("settles what it can and exits with 1 for the rest", async () => {
    await using relay = await openCliRelay();
    const { receipt } = (await relay.json(HELLO)) as { readonly receipt: { readonly message_id: string } };
    const { code, stderr } = await relay.run(["ack", ZHIWEI, receipt.message_id, "no-such-message"]);
    assert.equal(code, 1);
    assert.match(stderr, /acknowledged 1 of 2\nerror: no-such-message: /);
    assert.deepEqual((await relay.client.readMailbox(ZHIWEI)).messages, []);
  });

  it("settles leased mail with its lease", async () => {
    await using relay = await openCliRelay();
    await relay.ok(HELLO);
    const { messages } = await relay.client.lease(ZHIWEI);
    const [item] = messages;
    assert.ok(item !== undefined);
    assert.equal((await relay.run(["ack", ZHIWEI, item.message_id])).code, 1);
    const answer = await relay.json(["ack", ZHIWEI, item.message_id, "--lease-id", item.lease.id]);
    assert.equal(answer["acknowledged"], 1);
  });
});

describe("show", () => {
  it("tells one message with its delivery and its receipts", async () => {
    await using relay = await openCliRelay();
    const { receipt } = await relay.client.send({ from: LULU, to: ZHIWEI, body: "知微你好" });
    await relay.client.ack(ZHIWEI, { message_ids: [receipt.message_id] });
    const text = await relay.ok(["show", receipt.message_id]);
    assert.match(text, /知微你好/);
    assert.match(text, /^acknowledged$/m);
    assert.match(text, /^accepted .*\n^acknowledged /m);
    const { code, stderr } = await relay.run(["show", "msg_nobody"]);
    assert.equal(code, 1);
    assert.match(stderr, /there is no message msg_nobody/);
  });
});

describe("reply, threads and timeline", () => {
  it("answer a request in its thread, which completes its task", async () => {
    await using relay = await openCliRelay();
    const { receipt } = (await relay.json([...HELLO, "--type", "request"])) as {
      readonly receipt: { readonly message_id: string; readonly task_id: string; readonly thread_id: string };
    };
    await relay.ok(["reply", receipt.message_id, "--from", "zhiwei", "--body", "收到"]);
    assert.equal((await relay.client.task(receipt.task_id)).state, "completed");
    const { messages } = await relay.client.readMailbox(LULU);
    assert.equal(messages[0]?.message.subject, "Re: hello");
    assert.equal(messages[0]?.message.thread_id, receipt.thread_id);

    const threads = await relay.ok(["threads", "--agent", "lulu"]);
    assert.ok(threads.includes(receipt.thread_id));
    const timeline = await relay.ok(["timeline", receipt.thread_id]);
    assert.match(
      timeline,
      /message\.accepted +lulu@kamac .*request lulu@kamac -> zhiwei@known-blocks1: hello/,
    );
    assert.match(timeline, /task\.completed/);
    const markdown = await relay.ok(["timeline", receipt.thread_id, "--markdown"]);
    assert.match(
      markdown,
      /^# Timeline thread_\S+\n\n- 20\S+Z: message\.accepted; actor=lulu@kamac; message_id=msg_/,
    );
  });

  it("need a message to answer", async () => {
    await using relay = await openCliRelay();
    assert.equal((await relay.run(["reply", "--from", ZHIWEI, "--body", "x"])).code, 2);
    assert.equal((await relay.run(["reply", "no-such", "--from", ZHIWEI, "--body", "x"])).code, 1);
  });
});
