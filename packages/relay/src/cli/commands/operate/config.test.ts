import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { cliRun } from "../../../../testing/cli-run.ts";

const KEY = "0123456789abcdef";

describe("config", () => {
  it("shows values and where they come from, without the key", async () => {
    const env = { PORT: "9000", A2A_RELAY_API_KEY: KEY };
    const { stdout } = await cliRun(["config", "--data", "/srv/relay"], { env });
    assert.match(stdout, /^SETTING +VALUE +FROM +FLAG\n/);
    assert.match(stdout, /\nPORT +9000 +environment +--port\n/);
    assert.match(stdout, /\nA2A_RELAY_DATA +\/srv\/relay +flag +--data\n/);
    assert.match(stdout, /\nA2A_RELAY_API_KEY +\(set\) +environment/);
    const json = await cliRun(["config", "--json"], { env });
    const { settings } = JSON.parse(json.stdout) as {
      readonly settings: readonly { readonly flag: string }[];
    };
    assert.ok(settings.some(({ flag }) => flag === "--drain-ms"));
    assert.doesNotMatch(stdout + json.stdout, new RegExp(KEY));
  });

  it("exits with 1 when something is wrong", async () => {
    const { code, stdout, stderr } = await cliRun(["config"], {
      env: { A2A_RELAY_AUTO_RETRY_SCHEDULER: "maybe" },
    });
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(
      stderr,
      /^error: A2A_RELAY_AUTO_RETRY_SCHEDULER="maybe" from the environment: expected 1, true/,
    );
  });
});
