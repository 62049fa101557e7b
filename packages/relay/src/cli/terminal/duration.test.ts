import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatDuration, formatTime, parseDurationMs, parseMomentMs, parsePastMs } from "./duration.ts";

describe("parseDurationMs", () => {
  const good: readonly (readonly [string, number])[] = [
    ["500ms", 500],
    ["30s", 30_000],
    ["10", 10_000],
    ["0.5", 500],
    ["5m", 300_000],
    ["1.5h", 5_400_000],
    ["7d", 604_800_000],
    ["0", 0],
  ];
  for (const [text, durationMs] of good) {
    it(`reads ${text}`, () => assert.equal(parseDurationMs(text), durationMs));
  }
  for (const text of ["", "-1s", "5 minutes", "1w", "s", "1e3s", "99999999d", "0x10"]) {
    it(`refuses ${JSON.stringify(text)}`, () =>
      assert.throws(() => parseDurationMs(text), /Expected a duration/));
  }
});

describe("parseMomentMs", () => {
  it("reads a duration from now", () => assert.equal(parseMomentMs("2h", 1_000), 7_201_000));
  it("reads a time with a zone", () => {
    assert.equal(parseMomentMs("2026-05-08T08:30:00Z", 0), Date.UTC(2026, 4, 8, 8, 30));
  });
  for (const text of ["tomorrow", "2026-05-08", "2026-05-08T08:30:00", "5x"]) {
    it(`refuses ${text}`, () => assert.throws(() => parseMomentMs(text, 0), /Expected a duration/));
  }
});

describe("parsePastMs", () => {
  it("reads a duration before now, not before the beginning of time", () => {
    assert.equal(parsePastMs("2h", 7_201_000), 1_000);
    assert.equal(parsePastMs("30d", 1_000), 0);
  });
  it("reads a time with a zone", () => {
    assert.equal(parsePastMs("2026-05-08T08:30:00Z", 0), Date.UTC(2026, 4, 8, 8, 30));
  });
  it("refuses anything else", () => assert.throws(() => parsePastMs("yesterday", 0), /Expected a duration/));
});

describe("formatDuration", () => {
  const shown: readonly (readonly [number, string])[] = [
    [-5, "0ms"],
    [850, "850ms"],
    [59_999, "59s"],
    [60_000, "1m"],
    [7_200_000, "2h"],
    [200_000_000, "2d"],
  ];
  for (const [durationMs, text] of shown) {
    it(`shows ${durationMs} as ${text}`, () => assert.equal(formatDuration(durationMs), text));
  }
});

describe("formatTime", () => {
  it("leaves out milliseconds", () =>
    assert.equal(formatTime("2026-05-08T08:30:00.123Z"), "2026-05-08T08:30:00Z"));
});
