import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openNameServer } from "../../../testing/name-server.ts";
import { outboundFailure } from "../../../testing/outbound-failure.ts";
import { answering, OK, openOutsideServer, requestTo } from "../../../testing/outside-network.ts";
import { EgressPolicy } from "../../core/rules/egress-policy.ts";
import { GuardedOutbound } from "./guarded-outbound.ts";
import { NameServers, type Resolve } from "./name-servers.ts";

const policy = new EgressPolicy(["127.0.0.0/8", "::1/128"]);
const { signal: never } = new AbortController();

describe("a name", () => {
  it("is not delayed by others whose name servers are silent, however many", async () => {
    await using names = await openNameServer({ "zhiwei.example": "127.0.0.1" });
    await using server = await openOutsideServer(answering(OK));
    const { resolve } = new NameServers({ servers: [names.server] });
    const outbound = new GuardedOutbound({ policy, resolve });
    const silent = Array.from({ length: 100 }, (_, number) => `n${number}.silent.example`);
    let over = 0;
    const failures = silent.map(async (host) => {
      await outboundFailure(outbound.request(requestTo(`http://${host}:${server.port}/`)), "aborted");
      over += 1;
    });
    await names.questions(2 * silent.length);
    const answer = await outbound.request(requestTo(`http://zhiwei.example:${server.port}/`));
    assert.deepEqual([answer.text, over], ["ok", 0]);
    await outbound[Symbol.asyncDispose]();
    await Promise.all(failures);
  });

  it("is queried for IPv4 and IPv6, and one answer is enough", async () => {
    await using names = await openNameServer({ "zhiwei.example": "93.184.215.14" });
    const { resolve } = new NameServers({ servers: [names.server] });
    assert.deepEqual(await resolve("zhiwei.example", never), [{ address: "93.184.215.14", family: 4 }]);
    assert.deepEqual(names.asked, ["zhiwei.example", "zhiwei.example"]);
  });

  it("that does not exist differs from one without an address", async () => {
    await using names = await openNameServer({ "lost.example": null, "empty.example": "" });
    const { resolve } = new NameServers({ servers: [names.server] });
    await assert.rejects(resolve("lost.example", never), { code: "ENOTFOUND" });
    assert.deepEqual(await resolve("empty.example", never), []);
  });

  it("is queried no more after the caller gives up", async () => {
    await using names = await openNameServer({});
    const given = new AbortController();
    const { resolve } = new NameServers({ servers: [names.server] });
    const failed = assert.rejects(resolve("silent.example", given.signal), { code: "ECANCELLED" });
    await names.questions(2);
    given.abort();
    await failed;
  });

  it("is queried no more after the client closes", async () => {
    const { promise: given, resolve: give } = Promise.withResolvers<AbortSignal>();
    const { promise: nothing } = Promise.withResolvers<never>();
    const resolve: Resolve = (_name, signal) => {
      give(signal);
      return nothing;
    };
    const outbound = new GuardedOutbound({ policy, resolve });
    const failed = outboundFailure(outbound.request(requestTo("http://silent.example/")), "aborted");
    const signal = await given;
    await outbound[Symbol.asyncDispose]();
    await failed;
    assert.equal(signal.aborted, true);
  });

  it("times out where the name server is silent", async () => {
    await using names = await openNameServer({});
    const { resolve } = new NameServers({ servers: [names.server], tryMs: 250 });
    await using outbound = new GuardedOutbound({ policy, resolve });
    const request = requestTo("http://silent.example/", { timeoutMs: 30_000 });
    await outboundFailure(
      outbound.request(request),
      "timeout",
      /^no connection to "silent.example" in time$/,
    );
  });

  for (const name of ["localhost", "LOCALHOST"]) {
    it(`of this machine needs no name server: ${name}`, async () => {
      await using names = await openNameServer({});
      const { resolve } = new NameServers({ servers: [names.server] });
      const found = await resolve(name, never);
      assert.ok(found.length > 0 && found.every(({ address }) => policy.allows(address)));
      assert.deepEqual(names.asked, []);
    });
  }
});
