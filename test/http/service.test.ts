import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openHttpRelay } from "../../packages/relay/testing/http-relay.ts";

describe("GET /health and /ready", () => {
  it("say that the process is alive and that a write reaches the disk", async () => {
    await using relay = await openHttpRelay();
    const health = await relay.get("/health");
    assert.deepEqual([health.status, health.json.status], [200, "ok"]);
    const ready = await relay.get("/ready");
    assert.deepEqual([ready.status, ready.json.status], [200, "ready"]);
    assert.equal((await relay.get("/events?since=4")).json.events.length, 0, "asking is not journaled");
  });
});

describe("GET /metrics", () => {
  it("counts calls by route and status, and open deliveries by state", async () => {
    await using relay = await openHttpRelay();
    await relay.send();
    await relay.get("/agents/missing");
    await relay.get("/no/such/route");
    const { status, headers, text } = await relay.get("/metrics");
    assert.equal(status, 200);
    assert.match(headers["content-type"] ?? "", /^text\/plain/);
    assert.match(text, /a2a_relay_http_requests_total\{method="POST",route="\/messages",status="201"\} 1/);
    assert.match(text, /requests_total\{method="GET",route="\/agents\/:id",status="404"\} 1/);
    assert.match(text, /requests_total\{method="GET",route="none",status="404"\} 1/);
    assert.match(text, /a2a_relay_open_deliveries\{tenant="default",state="available"\} 1/);
    assert.match(text, /a2a_relay_http_request_seconds_bucket/);
    assert.match(text, /a2a_relay_resident_memory_bytes \d+/);
  });

  it("has labels of routes only, never of what callers write", async () => {
    await using relay = await openHttpRelay();
    for (let index = 0; index < 20; index += 1) await relay.get(`/made/up/${index}`);
    const { text } = await relay.get("/metrics");
    assert.doesNotMatch(text, /made/);
  });
});

describe("a path that does not exist", () => {
  it("is answered with the way to what is", async () => {
    await using relay = await openHttpRelay();
    await relay.refused(relay.get("/nothing"), "not_found", /GET \/docs/);
    await relay.refused(relay.get("/Agents"), "not_found");
    await relay.refused(relay.call("PUT", "/messages", {}), "not_found", /PUT \/messages/);
    await relay.refused(relay.call("PATCH", "/agents/lulu", {}), "not_found");
    await relay.refused(relay.call("DELETE", "/messages/m"), "not_found");
    await relay.refused(relay.call("OPTIONS", "/messages"), "not_found");
    await relay.refused(relay.get(`/agents/${"x".repeat(5_000)}`), "too_large", /200 characters/);
  });

  it("does not repeat the query, which may hold a secret", async () => {
    await using relay = await openHttpRelay();
    const error = await relay.refused(relay.get("/nothing?token=secret"), "not_found");
    assert.doesNotMatch(error.message, /secret/);
  });
});

describe("HEAD", () => {
  it("answers as GET would, without a body", async () => {
    await using relay = await openHttpRelay();
    const answer = await relay.call("HEAD", "/health");
    assert.deepEqual([answer.status, answer.text], [200, ""]);
    assert.equal((await relay.call("HEAD", "/agents/missing")).status, 404);
  });

  it("of a mailbox leaves no mark, because no agent has read it", async () => {
    await using relay = await openHttpRelay();
    const { message_id } = await relay.send();
    await relay.call("HEAD", "/mailbox/zhiwei");
    const { delivery } = (await relay.get(`/messages/${message_id}`)).json;
    assert.equal(delivery.delivered_at, undefined);
  });
});
