import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EgressPolicy } from "../../packages/relay/src/core/rules/egress-policy.ts";
import { GuardedOutbound } from "../../packages/relay/src/transports/egress/guarded-outbound.ts";
import { selfSigned } from "../../packages/relay/testing/certificate.ts";
import {
  HARMLESS_URLS,
  HOSTILE_ADDRESSES,
  HOSTILE_FORMS,
} from "../../packages/relay/testing/hostile-urls.ts";
import { type HttpRelay, openHttpRelay } from "../../packages/relay/testing/http-relay.ts";
import { outboundFailure } from "../../packages/relay/testing/outbound-failure.ts";
import {
  answering,
  OK,
  openOutsideNetwork,
  openOutsideServer,
  openTlsServer,
  PUBLIC_ADDRESS,
  requestTo,
} from "../../packages/relay/testing/outside-network.ts";

const ID = "知微@outside";

describe("a callback URL", () => {
  it("is refused when it leads inside, and the answer says what an operator can do", async () => {
    await using relay = await openHttpRelay();
    for (const { url, why } of HOSTILE_ADDRESSES) {
      const { message } = await relay.refused(register(relay, url), "invalid_argument");
      assert.match(message, /^callback_url: .*A2A_RELAY_EGRESS_ALLOW/, why);
    }
    assert.equal((await relay.get("/agents")).json.total, 2);
  });

  it("is refused when it has a form that the relay does not call", async () => {
    await using relay = await openHttpRelay({ flags: { "egress-allow": "0.0.0.0/0,::/0" } });
    for (const { url, why } of HOSTILE_FORMS) {
      const { message } = await relay.refused(register(relay, url), "invalid_argument");
      assert.match(message, /^callback_url: /, why);
    }
    await relay.refused(register(relay, `https://a.example/${"x".repeat(2_000)}`), "too_large");
    assert.equal((await relay.get("/agents")).json.total, 2);
  });

  it("is kept unchanged when it is harmless", async () => {
    await using relay = await openHttpRelay();
    for (const url of HARMLESS_URLS) {
      const answer = await register(relay, url);
      assert.ok(answer.status < 300, answer.text);
      assert.equal((await relay.get(`/agents/${encodeURIComponent(ID)}`)).json.callback_url, url);
    }
  });

  it("may lead inside where the operator allows it, and nowhere else", async () => {
    await using relay = await openHttpRelay({ env: { A2A_RELAY_EGRESS_ALLOW: "127.0.0.0/8, fd00::/8" } });
    for (const url of [
      "http://127.0.0.1:9/",
      "http://2130706433/",
      "http://localhost:9/",
      "http://[fd00::1]/",
    ]) {
      assert.ok((await register(relay, url)).status < 300, url);
    }
    for (const url of [
      "http://10.0.0.1/",
      "http://[::1]/",
      "http://[::127.0.0.1]/",
      "http://169.254.169.254/",
    ]) {
      await relay.refused(register(relay, url), "invalid_argument", /A2A_RELAY_EGRESS_ALLOW/);
    }
  });

  it("that was refused leaves the one before as it was", async () => {
    await using relay = await openHttpRelay();
    await register(relay, "https://hooks.example/");
    await relay.refused(register(relay, "http://127.0.0.1/"), "invalid_argument");
    const { json } = await relay.get(`/agents/${encodeURIComponent(ID)}`);
    assert.equal(json.callback_url, "https://hooks.example/");
  });
});

describe("the environment of the process", () => {
  it("sends no request through a proxy", async () => {
    await using proxy = await openOutsideServer(answering(OK));
    await using server = await openOutsideServer(answering(OK));
    const through = `http://127.0.0.1:${proxy.port}`;
    using _set = environment({ HTTP_PROXY: through, http_proxy: through, ALL_PROXY: through, NO_PROXY: "" });
    await using outbound = new GuardedOutbound({ policy: new EgressPolicy(["127.0.0.0/8"]) });
    await outbound.request(requestTo(`http://127.0.0.1:${server.port}/`));
    assert.deepEqual([server.connections.length, proxy.connections.length], [1, 0]);
  });

  it("makes no certificate good", async () => {
    await using server = await openTlsServer(selfSigned("hooks.example"));
    using _set = environment({ NODE_TLS_REJECT_UNAUTHORIZED: "0" });
    await using network = openOutsideNetwork(server.port);
    network.names.set("hooks.example", [PUBLIC_ADDRESS]);
    await outboundFailure(network.outbound.request(requestTo("https://hooks.example/")), "tls");
    assert.equal(server.requests(), 0);
  });
});

/** Variables of this process until the end of the block. */
function environment(variables: Readonly<Record<string, string>>): Disposable {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, variables);
  return {
    [Symbol.dispose]: () => {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    },
  };
}

function register(relay: HttpRelay, callback_url: string): ReturnType<HttpRelay["post"]> {
  return relay.post("/agents/register", { agent_id: ID, callback_url });
}
