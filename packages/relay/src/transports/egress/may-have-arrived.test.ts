import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { outboundFailure } from "../../../testing/outbound-failure.ts";
import { onRequest, openOutsideServer, requestTo } from "../../../testing/outside-network.ts";
import { EgressPolicy } from "../../core/rules/egress-policy.ts";
import { GuardedOutbound } from "./guarded-outbound.ts";

const policy = new EgressPolicy(["127.0.0.0/8"]);

describe("whether a request without an answer may have arrived", () => {
  it("is known not to be so where there was no connection", async () => {
    await using outbound = new GuardedOutbound({ policy });
    for (const [url, code] of [
      ["http://127.0.0.1:1/", "unreachable"],
      ["http://10.0.0.1/", "blocked"],
    ] as const) {
      assert.equal((await outboundFailure(outbound.request(requestTo(url)), code)).mayHaveArrived, false);
    }
  });

  it("is known not to be so where the connection was never made in time, or given up", async () => {
    // A name server that never answers.
    await using outbound = new GuardedOutbound({ policy, resolve: () => new Promise(() => {}) });
    const late = outbound.request(requestTo("http://slow.example/", { timeoutMs: 50 }));
    assert.equal((await outboundFailure(late, "timeout")).mayHaveArrived, false);
    const stopping = new AbortController();
    const stopped = outbound.request(requestTo("http://slow.example/", { signal: stopping.signal }));
    stopping.abort();
    assert.equal((await outboundFailure(stopped, "aborted")).mayHaveArrived, false);
  });

  it("is not known where the other side hangs up, falls silent, or nobody waits for it any longer", async () => {
    await using outbound = new GuardedOutbound({ policy });
    {
      await using server = await openOutsideServer((socket) => onRequest(socket, () => socket.destroy()));
      const broken = outbound.request(requestTo(`http://127.0.0.1:${server.port}/`));
      assert.equal((await outboundFailure(broken, "protocol")).mayHaveArrived, true);
    }
    const stopping = new AbortController();
    await using server = await openOutsideServer((socket) => onRequest(socket, () => stopping.abort()));
    const url = `http://127.0.0.1:${server.port}/`;
    const given = outbound.request(requestTo(url, { signal: stopping.signal }));
    assert.equal((await outboundFailure(given, "aborted")).mayHaveArrived, true);
    const silent = outbound.request(requestTo(url, { timeoutMs: 100 }));
    assert.equal((await outboundFailure(silent, "timeout")).mayHaveArrived, true);
  });
});
