import assert from "node:assert/strict";
import type { AgentId, CapabilityScope, CapabilityView, EventView } from "@a2a-relay/protocol";
import type { CapabilityRecord } from "../src/core/ports/access.ts";
import { agentOf, type AgentPrincipal, DEFAULT_TENANT } from "../src/core/access/principal.ts";
import type { SendResult } from "../src/core/messages/decide-send.ts";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "./core-on-memory.ts";
import { publicKeyOf } from "../src/core/rules/agent-owner.ts";

export const KAMES = "kames@kamac" as AgentId;

/** A core whose default tenant requires capabilities, with three agents and no grants. */
export interface GatedCore extends CoreOnMemory {
  readonly kames: AgentPrincipal;
  /** `by` defaults to the operator. */
  grant(
    subject: string,
    action: string,
    more?: { readonly scope?: CapabilityScope; readonly expires_at?: number; readonly by?: AgentPrincipal },
  ): Promise<CapabilityView>;
  /** Grants all that lulu needs to ask zhiwei for work, without limits. */
  letAsk(): Promise<void>;
  /** Sends a request from lulu to zhiwei, as lulu. */
  ask(message?: object): Promise<SendResult>;
  /** The events of the checks since the last call. */
  checks(): Promise<readonly EventView[]>;
  keyOf(agent: AgentId): Promise<string>;
  /** The stored record. */
  row(id: string): Promise<CapabilityRecord>;
}

export async function gatedCore(): Promise<GatedCore> {
  const core = await coreOnMemory({ capabilities: true });
  await core.agents.register(core.operator, { agent_id: KAMES, aliases: ["kames"], display_name: "凯姆斯" });
  let cursor = "0";
  const grant: GatedCore["grant"] = (subject, action, { by, ...more } = {}) =>
    core.capabilities.grant(by ?? core.operator, { subject, action, ...more });
  return {
    ...core,
    kames: agentOf(DEFAULT_TENANT, KAMES),
    grant,
    letAsk: async () => {
      await grant(LULU, `a2a.send.${ZHIWEI}`);
      await grant(ZHIWEI, `a2a.recv.${LULU}`);
    },
    ask: (message = {}) =>
      core.messages.send(core.lulu, { to: ZHIWEI, type: "request", body: "帮我看看", ...message }),
    checks: async () => {
      const query = { type: "capability_check", since: cursor };
      const page = await core.journal.events(core.operator, query);
      ({ cursor } = page);
      return page.events;
    },
    keyOf: async (agent) => {
      const key = await publicKeyOf(core.store, DEFAULT_TENANT, agent);
      assert.ok(key !== undefined, `${agent} has no public key`);
      return key;
    },
    row: async (id) => {
      const row = await core.store.capabilities.get(DEFAULT_TENANT, id);
      assert.ok(row !== undefined, `there is no ${id}`);
      return row;
    },
  };
}
