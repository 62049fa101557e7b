import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { readDotenv } from "./setting-reader.ts";

describe("readDotenv", () => {
  let directory = "";
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "dotenv-"));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it("reads quoted and commented lines", async () => {
    await writeFile(join(directory, ".env"), '# ours\nPORT=9000\nA2A_RELAY_DATA="/srv/post office"\n');
    assert.deepEqual({ ...readDotenv(directory) }, { PORT: "9000", A2A_RELAY_DATA: "/srv/post office" });
  });

  it("is empty where there is no file", () => {
    assert.deepEqual(readDotenv(directory), {});
  });

  it("says so when it cannot be read", async () => {
    await mkdir(join(directory, ".env"));
    assert.throws(() => readDotenv(directory), /\.env cannot be read: .*; repair or remove it/);
  });
});
