import assert from "node:assert/strict";
import type { MessageResponse, PushEndpointView, PushView } from "@a2a-relay/protocol";
import {
  type HttpRelay,
  type HttpRelayOptions,
  openHttpRelay,
  ZHIWEI,
} from "../../packages/relay/testing/http-relay.ts";

export const KAMES = "kames@桌面";

/** Fast enough to fail four times within a test. */
export const ENV = {
  A2A_RELAY_EGRESS_ALLOW: "127.0.0.0/8",
  A2A_RELAY_PUSH_ATTEMPTS_MS: "0,20,40,60",
  A2A_RELAY_PUSH_TIMEOUT_MS: "250",
};

/** A relay that may call this machine, and whose zhiwei is called. */
export interface PushingRelay extends HttpRelay {
  /** Registers zhiwei to be called there, and answers with the secret. */
  pushTo(url: string, said?: object): Promise<string>;
  endpoint(query?: string): Promise<PushEndpointView>;
  /** The message, once something of this kind has happened to it. */
  until(type: string, messageId: string): Promise<MessageResponse & { readonly push: PushView }>;
  message(messageId: string): Promise<MessageResponse & { readonly push: PushView }>;
}

export async function openPushingRelay(options: HttpRelayOptions = {}): Promise<PushingRelay> {
  const relay = await openHttpRelay({ ...options, env: { ...ENV, ...options.env } });
  const message = async (id: string) =>
    (await relay.get(`/messages/${encodeURIComponent(id)}`)).json as unknown as MessageResponse & {
      readonly push: PushView;
    };
  return {
    ...relay,
    message,
    pushTo: async (url, said = {}) => {
      const wanted = { agent_id: ZHIWEI, callback_url: url, push: "webhook", ...said };
      const { status, json, text } = await relay.post("/agents/register", wanted);
      assert.equal(status, 200, text);
      return json.push_secret ?? "";
    },
    endpoint: async (query = "") =>
      (await relay.get(`/agents/${ZHIWEI}/push${query}`)).json as unknown as PushEndpointView,
    until: async (type, messageId) => {
      for (let since = "0"; ;) {
        const { json } = await relay.get(`/events?type=${type}&since=${since}&wait_ms=20000`);
        assert.ok(json.events.length > 0, `${type} never came`);
        if (json.events.some((event) => event.message_id === messageId)) return message(messageId);
        since = json.cursor;
      }
    },
  };
}
