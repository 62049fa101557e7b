import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SOCKET_KEY_PREFIX, SOCKET_PROTOCOL } from "@a2a-relay/protocol";
import { chosenProtocol, socketCredential } from "./socket-mount.ts";

function offer(key: string): string {
  return `${SOCKET_PROTOCOL}, ${SOCKET_KEY_PREFIX}${Buffer.from(key).toString("base64url")}`;
}

describe("the credential of a socket", () => {
  it("is the header where there is one", () => {
    const headers = { authorization: "Bearer one", "sec-websocket-protocol": offer("another") };
    assert.equal(socketCredential(headers), "Bearer one");
  });

  it("is the key among the subprotocols where there is no header", () => {
    assert.equal(socketCredential({ "sec-websocket-protocol": offer("key_1.秘密") }), "Bearer key_1.秘密");
    assert.equal(socketCredential({ "sec-websocket-protocol": SOCKET_KEY_PREFIX }), "Bearer ");
  });

  it("is missing where nothing was shown", () => {
    assert.equal(socketCredential({}), undefined);
    assert.equal(socketCredential({ "sec-websocket-protocol": SOCKET_PROTOCOL }), undefined);
  });

  it("never comes back as the protocol that was chosen", () => {
    assert.equal(chosenProtocol(new Set(offer("k").split(", "))), SOCKET_PROTOCOL);
    assert.equal(chosenProtocol(new Set([`${SOCKET_KEY_PREFIX}a2V5`])), false);
  });
});
