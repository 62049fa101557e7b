import assert from "node:assert/strict";
import { Socket } from "node:net";
import { it } from "node:test";
import { outboundFailure } from "../../../testing/outbound-failure.ts";
import { requestTo } from "../../../testing/outside-network.ts";
import { EgressPolicy } from "../../core/rules/egress-policy.ts";
import { GuardedOutbound } from "./guarded-outbound.ts";

it("a name that nobody answers for is given up after ten seconds, whoever waits", async (context) => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<AbortSignal>();
  const { promise: nothing } = Promise.withResolvers<never>();
  context.mock.timers.enable({ apis: ["setTimeout"] });
  await using outbound = new GuardedOutbound({
    policy: new EgressPolicy([]),
    resolve: (_name, signal) => {
      ask(signal);
      return nothing;
    },
  });
  const request = requestTo("http://silent.example/", { timeoutMs: 60_000 });
  const failed = outboundFailure(outbound.request(request), "timeout", /within 10000 ms$/);
  const signal = await asked;
  context.mock.timers.tick(10_000);
  await failed;
  assert.equal(signal.aborted, true);
});

it("a connection that does not come about is given up after ten seconds, whoever waits", async (context) => {
  const socket = new Socket();
  const { promise: dialled, resolve } = Promise.withResolvers<void>();
  context.mock.timers.enable({ apis: ["setTimeout"] });
  await using outbound = new GuardedOutbound({
    policy: new EgressPolicy(["127.0.0.0/8"]),
    dial: () => {
      setImmediate(resolve);
      return socket;
    },
  });
  const request = requestTo("http://127.0.0.1/", { timeoutMs: 60_000 });
  const failed = outboundFailure(outbound.request(request), "timeout", /within 10000 ms$/);
  await dialled;
  context.mock.timers.tick(10_000);
  await failed;
  assert.equal(socket.destroyed, true);
});
