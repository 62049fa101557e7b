import type { RelayClient } from "@a2a-relay/client";
import type { AgentView, Presence, RegisterResponse } from "@a2a-relay/protocol";
import { given } from "../../command-line/options.ts";
import { formatTime } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { type Paint, type TextStyle, factLines, visibleLine } from "../../terminal/text.ts";

export const SHOWN_ONCE = "Keep it now: it is not shown again.";

export const AGENT_COLUMNS: readonly Column<AgentView>[] = [
  { title: "ID", text: (agent) => agent.agent_id },
  { title: "NAME", text: (agent) => agent.display_name, flexible: true },
  { title: "PRESENCE", text: (agent) => agent.presence, style: (agent) => PRESENCE_STYLE[agent.presence] },
  { title: "ALIASES", text: (agent) => agent.aliases.join(", "), flexible: true },
  { title: "SKILLS", text: (agent) => agent.skills.map((skill) => skill.id).join(", "), flexible: true },
  { title: "LAST SEEN", text: (agent) => formatTime(agent.last_seen_at ?? "") },
];

const PRESENCE_STYLE: Readonly<Record<Presence, TextStyle>> = {
  online: "green",
  offline: "red",
  unknown: "dim",
};

export function agentLines(agent: AgentView, paint: Paint): readonly string[] {
  return [
    paint("bold", visibleLine(agent.agent_id)),
    ...factLines([
      ["name", agent.display_name],
      ["slug", agent.slug],
      ["aliases", agent.aliases.join(", ")],
      ["presence", agent.presence],
      ["skills", agent.skills.map((skill) => skill.id).join(", ")],
      ["callback", agent.callback_url],
      ["push", agent.push],
      ["public key", publicKeyText(agent)],
      ["registered", formatTime(agent.registered_at)],
      ["last seen", formatTime(agent.last_seen_at ?? "")],
    ]),
  ];
}

/** The secrets of a new registration. The relay never shows them again. */
export function ownKeyLines(answer: RegisterResponse, paint: Paint): readonly string[] {
  const { api_key: key, push_secret: secret } = answer;
  const lines = [
    ...(key === undefined ? [] : [`its API key is ${paint("bold", visibleLine(key))}`]),
    ...(secret === undefined ? [] : [`pushes are signed with ${paint("bold", visibleLine(secret))}`]),
  ];
  return lines.length === 0 ? [] : [...lines, SHOWN_ONCE];
}

function publicKeyText({ pubkey_b58: publicKey, custodial }: AgentView): string | undefined {
  return custodial === true ? `${publicKey} (held by the relay)` : publicKey;
}

/** Every agent of the relay, page by page. */
export async function allAgents(
  client: RelayClient,
  call: { readonly signal: AbortSignal },
): Promise<readonly AgentView[]> {
  const agents: AgentView[] = [];
  let pageToken: string | undefined;
  do {
    const page = await client.agents(given({ page_token: pageToken, limit: 500 }), call);
    agents.push(...page.agents);
    pageToken = page.pageToken;
  } while (pageToken !== undefined);
  return agents;
}
