import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CARD } from "../../testing/a2a-samples.ts";
import { readCard, writeV03Card } from "./card-dialect.ts";

describe("a card", () => {
  it("of 1.0 is not changed by reading it, its signatures included", () => {
    const signed = { ...CARD, signatures: [{ protected: "e30", signature: "x" }], "x-own": 1 };
    assert.deepEqual(readCard(signed), signed);
    assert.deepEqual(readCard({}), {});
  });

  it("of 0.3 becomes one of 1.0 without any member that 1.0 does not know", () => {
    const card = {
      name: "知微",
      url: "https://a.example/a2a",
      protocolVersion: "0.3.0",
      capabilities: { streaming: true, stateTransitionHistory: true },
      supportsAuthenticatedExtendedCard: true,
      security: [{ bearer: [] }],
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      additionalInterfaces: [
        { url: "https://a.example/a2a", transport: "JSONRPC" },
        { url: "a.example:50051", transport: "GRPC" },
      ],
      signatures: [{ protected: "e30", signature: "x" }],
    };
    assert.deepEqual(readCard(card), {
      name: "知微",
      supportedInterfaces: [
        { url: "https://a.example/a2a", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
        { url: "a.example:50051", protocolBinding: "GRPC", protocolVersion: "0.3" },
      ],
      capabilities: { streaming: true, extendedAgentCard: true },
      securityRequirements: [{ schemes: { bearer: { list: [] } } }],
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "bearer" } } },
    });
  });

  it("with the interfaces of both versions keeps both", () => {
    const both = { url: "https://a.example/old", supportedInterfaces: CARD["supportedInterfaces"] };
    assert.deepEqual(readCard(both)["supportedInterfaces"], [
      ...(CARD["supportedInterfaces"] as readonly object[]),
      { url: "https://a.example/old", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
    ]);
  });

  it("of 0.1, which says no version, is read as one of 0.3", () => {
    assert.deepEqual(readCard({ url: "https://a.example" }), {
      supportedInterfaces: [{ url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "0.3" }],
      capabilities: {},
    });
  });

  it("is written for 0.3 with the interfaces of that time, or with all where there is none", () => {
    assert.equal(writeV03Card(CARD)["preferredTransport"], "JSONRPC");
    const interfaces = [{ url: "https://a.example", protocolBinding: "HTTP+JSON", protocolVersion: "1.0" }];
    const { url, preferredTransport, protocolVersion } = writeV03Card({ supportedInterfaces: interfaces });
    assert.deepEqual([url, preferredTransport, protocolVersion], ["https://a.example", "HTTP+JSON", "0.3.0"]);
  });

  it("loses its signatures with its shape", () => {
    assert.equal(writeV03Card({ ...CARD, signatures: [{}] })["signatures"], undefined);
  });

  it("keeps unknown members in either shape", () => {
    const own = { ...CARD, "x-own": { 留: true } };
    assert.deepEqual(writeV03Card(own)["x-own"], { 留: true });
    assert.deepEqual(readCard(writeV03Card(own))["x-own"], { 留: true });
  });

  it("offers one of several flows in 1.0, which has room for one", () => {
    const flow = { tokenUrl: "https://id.example", scopes: {} };
    const flows = { password: flow, clientCredentials: flow };
    const card = { url: "https://a.example", securitySchemes: { o: { type: "oauth2", flows } } };
    assert.deepEqual(readCard(card)["securitySchemes"], {
      o: { oauth2SecurityScheme: { flows: { clientCredentials: flow } } },
    });
  });

  it("may have names in snake_case", () => {
    const card = {
      supported_interfaces: [
        { url: "https://a.example", protocol_binding: "JSONRPC", protocol_version: "1.0" },
      ],
      capabilities: { push_notifications: true },
      security_requirements: [{ schemes: {} }],
    };
    assert.deepEqual(readCard(card), {
      supportedInterfaces: [{ url: "https://a.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
      capabilities: { pushNotifications: true },
      securityRequirements: [{ schemes: {} }],
    });
  });
});
