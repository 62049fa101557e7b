import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NOON_MS } from "../../testing/fake-clock.ts";
import type { ChainHead, EventDraft, EventRecord } from "../core/ports/journal.ts";
import { GENESIS, sealEvent } from "../core/rules/event.ts";
import {
  anchorLine,
  eventFrom,
  eventLine,
  type ExportReport,
  type NotedAnchor,
  verifyExport,
} from "./offline-audit.ts";

const AT = "2026-05-08T12:00:00.000Z";

function chainOf(count: number, tenant = "default", start: ChainHead = GENESIS): readonly EventRecord[] {
  const events: EventRecord[] = [];
  for (let index = 0; index < count; index += 1) {
    const previous: ChainHead = events.at(-1) ?? start;
    events.push(sealEvent(tenant, previous, draft({ text: `第 ${previous.seq + 1} 件\u2028` })));
  }
  return events;
}

function draft(data: EventDraft["data"]): EventDraft {
  return {
    type: "message.accepted",
    atMs: NOON_MS,
    actor: "lulu@kamac",
    agentId: "zhiwei@known-blocks1",
    messageId: "msg_1",
    taskId: null,
    threadId: "t1",
    data,
  };
}

function exportOf(events: readonly EventRecord[]): readonly string[] {
  const last = events.at(-1);
  assert.ok(last);
  return [...events.map(eventLine), anchorLine({ ...last, at: AT })];
}

async function verify(lines: readonly string[], noted?: NotedAnchor): Promise<ExportReport> {
  async function* bytes(): AsyncGenerator<Uint8Array, void, void> {
    yield Buffer.from(lines.map((line) => `${line}\n`).join(""));
  }
  return verifyExport(bytes(), noted);
}

async function assertFound(lines: readonly string[], problem: RegExp, noted?: NotedAnchor): Promise<void> {
  const report = await verify(lines, noted);
  assert.equal(report.ok, false);
  assert.match(report.problem ?? "", problem);
}

function edited(lines: readonly string[], index: number, edit: (line: string) => string): readonly string[] {
  const before = lines[index] ?? "";
  const after = edit(before);
  assert.notEqual(after, before);
  return lines.with(index, after);
}

describe("an export", () => {
  const events = chainOf(5);
  const lines = exportOf(events);

  it("verifies as the relay wrote it", async () => {
    assert.deepEqual(await verify(lines), {
      ok: true,
      tenant: "default",
      events: 5,
      first_seq: 1,
      last_seq: 5,
      head: events[4]?.hash,
    });
  });

  it("may be a later part, and several may follow each other", async () => {
    const start = events.at(-1) ?? GENESIS;
    const later = exportOf(chainOf(3, "default", start));
    assert.deepEqual((await verify(later)).first_seq, 6);
    const whole = await verify([...lines, ...later]);
    assert.deepEqual([whole.ok, whole.events], [true, 8]);
    const unfinished = await verify([...lines.slice(0, 5), ...later]);
    assert.deepEqual([unfinished.ok, unfinished.events], [true, 8]);
    await assertFound([...lines.slice(0, 4), ...later], /line 5: event 5 is missing: 6 follows 4/);
  });

  it("shows any edit of an event", async () => {
    const edits: readonly ((line: string) => string)[] = [
      (line) => line.replace("lulu@kamac", "eve@kamac"),
      (line) => line.replace(AT, "2026-05-08T12:00:00.001Z"),
      (line) => line.replace("第", "弟"),
      (line) => line.replace('"message_id":"msg_1",', ""),
      (line) => line.replace('"tenant":"default"', '"tenant":"乙"'),
      (line) => line.replace("message.accepted", "message.dead"),
    ];
    for (const edit of edits)
      await assertFound(edited(lines, 2, edit), /line 3: event 3 .*(changed|of tenant)/);
  });

  it("shows members that the hash does not cover", async () => {
    const edits: readonly ((line: string) => string)[] = [
      (line) => line.replace('"actor":', '"actor":"eve@kamac","actor":'),
      (line) => line.replace('"data":', '"note":"approved","data":'),
      (line) => line.replace('"data":{', '"data":{"text":"另一件",'),
      (line) => ` ${line}`,
      (line) => line.slice(0, -5),
      () => "",
      () => "null",
      (line) => line.replace('"seq":3', '"seq":"3"'),
      (line) => line.replace(AT, "noon"),
    ];
    for (const edit of edits)
      await assertFound(edited(lines, 2, edit), /line 3 is not as the relay writes it/);
  });

  it("shows events that are missing, duplicated or reordered", async () => {
    await assertFound(lines.toSpliced(2, 1), /line 3: event 3 is missing: 4 follows 2/);
    await assertFound(lines.toSpliced(2, 0, lines[1] ?? ""), /line 3: event 3 is missing: 2 follows 2/);
    await assertFound(
      [1, 0, 2, 3, 4, 5].map((index) => lines[index] ?? ""),
      /event 3 is missing|line 2/,
    );
  });

  it("shows that its beginning is not the genesis", async () => {
    const [first] = chainOf(1, "default", { seq: 0, hash: "f".repeat(64) });
    assert.ok(first);
    await assertFound(exportOf([first]), /line 1: event 1 .*was changed/);
  });

  it("shows that its end was cut off", async () => {
    await assertFound(lines.slice(0, 5), /the last line is not an anchor record/);
    await assertFound(lines.slice(0, 3), /the last line is not an anchor record/);
    await assertFound(lines.toSpliced(4, 1), /line 5: the anchor record speaks of event 5, .* end with 4/);
    await assertFound([], /no events/);
    await assertFound(lines.slice(5), /line 1: the anchor record speaks of event 5, which is not there/);
  });

  it("shows an anchor record that was edited", async () => {
    const other = { tenant: "default", seq: 5, hash: "f".repeat(64), at: AT };
    await assertFound(lines.with(5, anchorLine(other)), /line 6: .*rewritten/);
    await assertFound(lines.with(5, '{"anchor":{}}'), /line 6 is not as/);
  });

  it("is compared with an anchor that the user noted", async () => {
    const noted = (seq: number): NotedAnchor => ({ seq, hash: events[seq - 1]?.hash ?? "" });
    assert.equal((await verify(lines, noted(5))).ok, true);
    assert.equal((await verify(lines, noted(1))).ok, true);
    const short = exportOf(events.slice(0, 3));
    await assertFound(short, /has seen event 5, but the last one here is 3: 2 events are missing/, noted(5));
    await assertFound(short.slice(0, 3), /1 event is missing/, noted(4));
    const forged = exportOf([
      ...events.slice(0, 2),
      ...chainOf(3, "default", { seq: 2, hash: GENESIS.hash }),
    ]);
    assert.equal((await verify(forged)).ok, false);
    const other = exportOf(chainOf(5, "乙"));
    assert.equal((await verify(other)).ok, true, "in order by itself");
    await assertFound(other, /has seen event 4 with another hash/, noted(4));
  });

  it("of a later part is compared with anchors that it reaches", async () => {
    const later = exportOf(events.slice(2));
    const noted = (seq: number): NotedAnchor => ({ seq, hash: events[seq - 1]?.hash ?? "" });
    for (const seq of [2, 3, 5]) assert.equal((await verify(later, noted(seq))).ok, true);
    await assertFound(later, /has seen event 1, but the first one here is 3: search for it/, noted(1));
    await assertFound(later, /with another hash/, { seq: 2, hash: "f".repeat(64) });
  });

  it("accepts events of any relay and drops members that this version does not know", () => {
    const view: unknown = JSON.parse(lines[0] ?? "");
    assert.ok(typeof view === "object");
    assert.deepEqual(eventFrom({ ...view, colour: "blue" }), events[0]);
    for (const other of [null, [], "x", {}, { ...view, tenant: undefined }, { ...view, agent: 7 }]) {
      assert.equal(eventFrom(other), undefined);
    }
  });
});
