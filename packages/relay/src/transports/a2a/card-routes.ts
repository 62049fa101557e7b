import { createHash } from "node:crypto";
import { A2A_DIALECTS, type A2aVersion, type AgentCard } from "@a2a-relay/protocol";
import type { A2aCardService, ServedCard } from "../../core/a2a/a2a-cards.ts";
import { DEFAULT_TENANT } from "../../core/access/principal.ts";
import { parseTenantName } from "../../core/keys/tenant-service.ts";
import { type Answer, JSON_TYPE, type OpenCall, param, type Route } from "../http/route.ts";
import { readHeaders } from "./a2a-exchange.ts";

export interface CardRouteSettings {
  /** The dialect of cards for callers that name none. */
  readonly cardDialect: CardDialect;
}

export type CardDialect = Extract<A2aVersion, "1.0" | "0.3">;

const tag = "A2A";
const answers = { 200: "The card", 304: "The caller has the current card" };
const CACHED_S = 60;

/** The paths where clients of each version request a card, with the default dialect. */
function cardPaths({
  cardDialect,
}: CardRouteSettings): readonly (readonly [path: string, dialect: CardDialect])[] {
  return [
    ["/.well-known/agent-card.json", cardDialect],
    // Only clients older than 0.3 use it.
    ["/.well-known/agent.json", "0.3"],
    ["/.well-known/a2a-agent-card", cardDialect],
  ];
}

/** Cards over HTTP: the relay's, each agent's as callers need it, and as its owner wrote it. */
export function cardRoutes(cards: A2aCardService, settings: CardRouteSettings): readonly Route[] {
  const paths = cardPaths(settings);
  return [
    ...paths.map(([path, dialect]): Route => ({
      method: "GET",
      path,
      tag,
      summary: "The relay's own A2A card",
      open: true,
      answers,
      handle: async (call) => {
        const tenant = call.tenant === undefined ? DEFAULT_TENANT : parseTenantName(call.tenant);
        return cardAnswer(call, cards.relayCard(tenant), writerFor(call, dialect));
      },
    })),
    // Some clients expect the card below the address that they call.
    ...[...paths, ...paths.map(([path, dialect]) => [`/a2a${path}`, dialect] as const)].map(
      ([path, dialect]): Route => ({
        method: "GET",
        path: `/agents/{id}${path}`,
        tag,
        summary: "The agent's A2A card, with the relay's interfaces in front",
        open: "unless-keyed",
        answers,
        handle: async (call) => {
          const write = writerFor(call, dialect);
          return cardAnswer(call, await cards.agentCard(call.principal, param(call, "id")), write);
        },
      }),
    ),
    {
      method: "GET",
      path: "/agents/{id}/card",
      tag,
      summary: "The agent's card as its owner wrote it",
      open: "unless-keyed",
      answers,
      handle: async (call) => {
        const written = await cards.writtenCard(call.principal, param(call, "id"));
        return cardAnswer(call, written, (card) => card);
      },
    },
  ];
}

type CardWriter = (card: AgentCard) => AgentCard;

/** The caller's version, else the path's. Throws for an unknown one. */
function writerFor(call: OpenCall, dialect: CardDialect): CardWriter {
  const { version = dialect } = readHeaders(call);
  return (card) => A2A_DIALECTS[version].writeCard(card);
}

function cardAnswer(call: OpenCall, { card, changedAtMs }: ServedCard, write: CardWriter): Answer {
  const json = JSON.stringify(write(card));
  const etag = `"${createHash("sha256").update(json).digest("base64url")}"`;
  // A card that needed a key must not be cached for others.
  const whose = (call.header("authorization") ?? "") === "" ? "public" : "private";
  const headers = {
    etag,
    "last-modified": new Date(changedAtMs).toUTCString(),
    "cache-control": `${whose}, max-age=${CACHED_S}, must-revalidate`,
    vary: "a2a-version, authorization",
  };
  return isCurrent(call, etag, changedAtMs)
    ? { status: 304, headers }
    : { body: json, contentType: JSON_TYPE, headers };
}

/** If-None-Match wins over If-Modified-Since. */
function isCurrent(call: OpenCall, etag: string, changedAtMs: number): boolean {
  const tags = call.header("if-none-match");
  if (tags !== undefined) return hasTag(tags, etag);
  const sinceMs = Date.parse(call.header("if-modified-since") ?? "");
  // The header has whole seconds.
  return Math.floor(changedAtMs / 1_000) * 1_000 <= sinceMs;
}

/** A proxy may have marked the tag as weak. */
function hasTag(ifNoneMatch: string, etag: string): boolean {
  const tags = ifNoneMatch.split(",").map((each) => each.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
