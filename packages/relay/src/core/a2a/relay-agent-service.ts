import { type A2aMessage, LIMITS, textOfParts } from "@a2a-relay/protocol";
import type { Guard } from "../access/guard.ts";
import type { Principal } from "../access/principal.ts";
import { serveCard } from "../agents/agent-card.ts";
import type { AgentWithPresence } from "../ports/agents.ts";
import { agentUrl, type CardSettings, tenantUrl } from "../agents/card-interfaces.ts";
import { isListedFor } from "../access/authorize.ts";
import type { Clock } from "../ports/clock.ts";
import type { Identifiers } from "../ports/ids.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { parseSend } from "./a2a-request.ts";
import { fitOf, searchWords } from "../discovery/agent-search.ts";

export interface RelayAgentParts {
  readonly store: RelayStore;
  readonly guard: Guard;
  readonly clock: Clock;
  readonly ids: Identifiers;
}

/** An agent in an answer. */
interface FoundAgent {
  readonly agent_id: string;
  readonly name: string;
  readonly description: string;
  readonly skills: readonly { readonly id: string; readonly name: string }[];
  readonly url: string;
}

interface Search {
  readonly agents: readonly FoundAgent[];
  /** How many agents fit, including those beyond `agents`. */
  readonly total: number;
  /** The search ended before it had read all agents. */
  readonly isCutShort: boolean;
}

const SHOWN_MAX = 20;
/** A page stays small even if all its agents have large cards. */
const PAGE_AGENTS = 50;
const HELP: ReadonlySet<string> = new Set(["", "help", "帮助", "?", "？"]);

/** Answers messages that name no agent. */
export class RelayAgentService {
  readonly #parts: RelayAgentParts;
  readonly #settings: CardSettings;

  constructor(parts: RelayAgentParts, settings: CardSettings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  /** Finds agents by their names and skills; explains how to ask where nothing fits. */
  async answer(principal: Principal, params: unknown): Promise<{ readonly message: A2aMessage }> {
    const { message } = parseSend(params);
    await this.#parts.guard.authorize(principal, "agents.read");
    const text = textOfParts(message.parts);
    const { tenant } = principal;
    if (HELP.has(text.trim().toLowerCase()))
      return this.#messageOf(message.contextId, this.#help(tenant), []);
    const found = await this.#find(principal, text);
    const answer = found.total === 0 ? this.#noneFits(tenant, found) : listOf(found);
    return this.#messageOf(message.contextId, answer, found.agents);
  }

  async #find(principal: Principal, text: string): Promise<Search> {
    const { tenant } = principal;
    const { store, clock } = this.#parts;
    const sought = searchWords(text);
    const fitting: { readonly fit: number; readonly found: AgentWithPresence }[] = [];
    let readCount = 0;
    let total = 0;
    for (let afterId = ""; readCount < LIMITS.scanRowsMax;) {
      const page = await store.agents.list({ tenant, isRemoved: false, afterId, limit: PAGE_AGENTS });
      for (const found of page) {
        await clock.nextTurn();
        if (!isListedFor(principal, found.agent.id)) continue;
        // A question without search words finds all agents.
        const fit = sought.length === 0 ? 1 : fitOf(found.agent, sought);
        if (fit > 0) fitting.push({ fit, found });
      }
      readCount += page.length;
      const last = page.at(-1)?.agent.id;
      if (last === undefined || page.length < PAGE_AGENTS) break;
      afterId = last;
      total += keepBest(fitting);
    }
    total += keepBest(fitting) + fitting.length;
    return {
      agents: fitting.map(({ found }) => this.#foundAgent(found)),
      total,
      isCutShort: readCount >= LIMITS.scanRowsMax,
    };
  }

  /** Uses the served card, so that the answer contains nothing that other readers cannot read. */
  #foundAgent(found: AgentWithPresence): FoundAgent {
    const { id, tenant } = found.agent;
    const card = serveCard(found, this.#settings, this.#parts.clock.nowMs());
    const skills = card["skills"] as FoundAgent["skills"];
    return {
      agent_id: id,
      name: String(card["name"]),
      description: String(card["description"]),
      skills: skills.map((skill) => ({ id: skill.id, name: skill.name })),
      url: agentUrl(this.#settings.publicUrl(), tenant, id),
    };
  }

  #noneFits(tenant: string, { isCutShort }: Search): string {
    const where = isCutShort ? `Among the first ${LIMITS.scanRowsMax} agents no agent` : "No agent here";
    return `${where} fits these words.\n\n${this.#help(tenant)}`;
  }

  #help(tenant: string): string {
    const base = tenantUrl(this.#settings.publicUrl(), tenant);
    return [
      "This is a relay: it passes messages on to the agents that are registered here, whether or not they are online.",
      `To reach one, put its id into metadata.relay_target_agent_id, or call it at ${base}/agents/{id}/a2a.`,
      'To find one, say what it should be able to do, such as "translate contracts"; "list agents" lists them.',
    ].join("\n");
  }

  #messageOf(
    contextId: string | undefined,
    text: string,
    agents: readonly FoundAgent[],
  ): { readonly message: A2aMessage } {
    const message: A2aMessage = {
      messageId: this.#parts.ids.message(),
      role: "ROLE_AGENT",
      parts: [{ text }, { data: { agents } }],
      ...(contextId === undefined || contextId === "" ? {} : { contextId }),
    };
    return { message };
  }
}

/** Keeps the best `SHOWN_MAX`, best first; returns how many it removed. */
function keepBest(fitting: { readonly fit: number; readonly found: AgentWithPresence }[]): number {
  // Agents arrive ordered by id and sorting is stable, so equal ones stay in that order.
  fitting.sort((one, other) => other.fit - one.fit);
  return fitting.splice(SHOWN_MAX).length;
}

function listOf({ agents, total, isCutShort }: Search): string {
  const more = total > agents.length ? `, the best ${agents.length} of them` : "";
  const limit = isCutShort ? ` Only the first ${LIMITS.scanRowsMax} agents were searched.` : "";
  const lines = agents.map(({ agent_id, name, description, skills }) => {
    const called = name === agent_id ? agent_id : `${oneLine(name)} (${agent_id})`;
    const can =
      skills.length === 0 ? "" : ` Skills: ${oneLine(skills.map((skill) => skill.name).join(", "))}.`;
    return `- ${called}: ${oneLine(description)}${can}`;
  });
  return [
    `${total === 1 ? "1 agent fits" : `${total} agents fit`}${more}:${limit}`,
    ...lines,
    "To reach one, put its id into metadata.relay_target_agent_id, or call it at its own url.",
  ].join("\n");
}

/** An agent's text must not imitate lines of the relay's answer. */
function oneLine(text: string): string {
  const line = Array.from(text.replaceAll(/[\s\p{C}]+/gu, " ").trim());
  const isWhole = line.length <= LIMITS.subjectCharsMax;
  return isWhole ? line.join("") : `${line.slice(0, LIMITS.subjectCharsMax).join("")}…`;
}
