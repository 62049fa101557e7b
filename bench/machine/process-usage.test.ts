import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { describe, it } from "node:test";
import { cpuMicrosOf } from "./process-usage.ts";

const SPENT_MICROS = 200_000;
/** The system counts the time of ended processes in steps of 10 ms, for user and kernel mode each. */
const STEPS_MICROS = 20_000;
/** A program that uses so much CPU time, however long it takes. */
const SPEND = `while (process.cpuUsage().user + process.cpuUsage().system < ${SPENT_MICROS});`;

describe("cpuMicrosOf", { skip: process.platform !== "linux" && "only Linux has /proc" }, () => {
  it("includes children that have ended", () => {
    const before = cpuMicrosOf(process.pid) ?? Number.NaN;
    spawnSync(process.execPath, ["-e", SPEND]);
    const used = (cpuMicrosOf(process.pid) ?? Number.NaN) - before;
    assert.ok(used >= SPENT_MICROS - STEPS_MICROS, `${used} µs`);
  });

  it("includes children that still run", async () => {
    const before = cpuMicrosOf(process.pid) ?? Number.NaN;
    const child = spawn(process.execPath, ["-e", `${SPEND} console.log(); process.stdin.resume()`]);
    await once(child.stdout, "data");
    const used = (cpuMicrosOf(process.pid) ?? Number.NaN) - before;
    const ended = once(child, "exit");
    child.stdin.end();
    await ended;
    assert.ok(used >= SPENT_MICROS - STEPS_MICROS, `${used} µs`);
  });

  it("knows nothing of a process that does not exist", () => {
    assert.equal(cpuMicrosOf(0), undefined);
  });
});
