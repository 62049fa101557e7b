import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HttpMetrics } from "./http-metrics.ts";

const metrics = (): HttpMetrics =>
  new HttpMetrics(async (tenant) => new Map(tenant === "acme" ? [["available", 2]] : []));

describe("metrics", () => {
  it("count requests and their time by route", async () => {
    const measured = metrics();
    measured.record({ method: "POST", route: "/messages" }, 201, 0.01);
    measured.record({ method: "POST", route: "/messages" }, 409, 0.2);
    const lines = (await measured.text({ tenants: [], isProcessWide: true })).split("\n");
    const labels = 'method="POST",route="/messages"';
    for (const line of [
      `a2a_relay_http_requests_total{${labels},status="201"} 1`,
      `a2a_relay_http_requests_total{${labels},status="409"} 1`,
      `a2a_relay_http_request_seconds_bucket{le="0.025",${labels}} 1`,
      `a2a_relay_http_request_seconds_bucket{le="0.5",${labels}} 2`,
      `a2a_relay_http_request_seconds_count{${labels}} 2`,
    ]) {
      assert.ok(lines.includes(line), `${line} is not in\n${lines.join("\n")}`);
    }
  });

  it("list every kind of stream from the start", async () => {
    const measured = metrics();
    measured.streams.opened("mailbox");
    measured.streams.opened("mailbox");
    measured.streams.closed("mailbox");
    measured.streams.cutOff("socket");
    const text = await measured.text({ tenants: [], isProcessWide: true });
    for (const line of [
      'a2a_relay_open_streams{kind="mailbox"} 1',
      'a2a_relay_open_streams{kind="task"} 0',
      'a2a_relay_slow_readers_total{kind="socket"} 1',
      'a2a_relay_slow_readers_total{kind="a2a"} 0',
    ]) {
      assert.ok(text.includes(line), line);
    }
  });

  it("of a tenant are its open deliveries only", async () => {
    const text = await metrics().text({ tenants: ["acme"], isProcessWide: false });
    assert.match(text, /^a2a_relay_open_deliveries\{tenant="acme",state="available"\} 2$/m);
    assert.doesNotMatch(text, /resident_memory|open_streams|http_request/);
  });
});
