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

/** An agent as the relay tells of it. */
interface FoundAgent {
  readonly agent_id: string;
  readonly name: string;
  readonly description: string;
  readonly skills: readonly { readonly id: string; readonly name: string }[];
  readonly url: string;
}

interface Search {
  readonly agents: readonly FoundAgent[];
  /** How many fit, shown or not. */
  readonly total: number;
  /** Not everybody was looked at. */
  readonly isCutShort: boolean;
}

const SHOWN_MAX = 20;
/** Few enough to be read in one turn, however much they say of themselves. */
const PAGE_AGENTS = 50;
const HELP: ReadonlySet<string> = new Set(["", "help", "帮助", "?", "？"]);

/** What the relay itself answers, when a message is for no agent. */
export class RelayAgentService {
  readonly #parts: RelayAgentParts;
  readonly #settings: CardSettings;

  constructor(parts: RelayAgentParts, settings: CardSettings) {
    this.#parts = parts;
    this.#settings = settings;
  }

  /** Finds agents by what they are called and can do; whoever asks for nothing that is here is told how to ask. */
  async answer(principal: Principal, params: unknown): Promise<{ readonly message: A2aMessage }> {
    const { message } = parseSend(params);
    await this.#parts.guard.authorize(principal, "agents.read");
    const text = textOfParts(message.parts);
    const { tenant } = principal;
    if (HELP.has(text.trim().toLowerCase())) return this.#say(message.contextId, this.#help(tenant), []);
    const found = await this.#find(principal, text);
    const words = found.total === 0 ? this.#nobody(tenant, found) : listOf(found);
    return this.#say(message.contextId, words, found.agents);
  }

  async #find(principal: Principal, text: string): Promise<Search> {
    const { tenant } = principal;
    const { store, clock } = this.#parts;
    const sought = searchWords(text);
    const fitting: { readonly fit: number; readonly found: AgentWithPresence }[] = [];
    let looked = 0;
    let total = 0;
    for (let afterId = ""; looked < LIMITS.scanRowsMax;) {
      const page = await store.agents(tenant, { afterId, limit: PAGE_AGENTS });
      for (const found of page) {
        await clock.nextTurn();
        if (!isListedFor(principal, found.agent.id)) continue;
        // A question without a word of its own is about everybody.
        const fit = sought.length === 0 ? 1 : fitOf(found.agent, sought);
        if (fit > 0) fitting.push({ fit, found });
      }
      looked += page.length;
      const last = page.at(-1)?.agent.id;
      if (last === undefined || page.length < PAGE_AGENTS) break;
      afterId = last;
      total += keepBest(fitting);
    }
    total += keepBest(fitting) + fitting.length;
    return {
      agents: fitting.map(({ found }) => this.#tell(found)),
      total,
      isCutShort: looked >= LIMITS.scanRowsMax,
    };
  }

  /** By the card that others are shown, so that nothing is told here that is not told there. */
  #tell(found: AgentWithPresence): FoundAgent {
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

  #nobody(tenant: string, { isCutShort }: Search): string {
    const where = isCutShort ? `Among the first ${LIMITS.scanRowsMax} agents nobody` : "Nobody here";
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

  #say(
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

/** Leaves those that will be shown, the best first; answers how many it took away. */
function keepBest(fitting: { readonly fit: number; readonly found: AgentWithPresence }[]): number {
  // Agents come by id and sorting is stable, so equals stay in that order.
  fitting.sort((one, other) => other.fit - one.fit);
  return fitting.splice(SHOWN_MAX).length;
}

function listOf({ agents, total, isCutShort }: Search): string {
  const more = total > agents.length ? `, the best ${agents.length} of them` : "";
  const limit = isCutShort ? ` Only the first ${LIMITS.scanRowsMax} agents were looked at.` : "";
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

/** What agents say of themselves must not look like lines of the relay. */
function oneLine(text: string): string {
  const line = Array.from(text.replaceAll(/[\s\p{C}]+/gu, " ").trim());
  const isWhole = line.length <= LIMITS.subjectCharsMax;
  return isWhole ? line.join("") : `${line.slice(0, LIMITS.subjectCharsMax).join("")}…`;
}
