import { createHash } from "node:crypto";
import { A2A_DIALECTS, a2aEndpoints, type A2aVersion, type AgentCard, operations } from "@a2a-relay/protocol";
import type { A2aCardService, ServedCard } from "../../core/a2a/a2a-cards.ts";
import { DEFAULT_TENANT } from "../../core/access/principal.ts";
import { parseTenantName } from "../../core/keys/tenant-service.ts";
import { type Answer, JSON_TYPE, type OpenCall, route, type Route } from "../http/route.ts";
import { readHeaders } from "./a2a-exchange.ts";

export interface CardRouteSettings {
  /** The dialect of cards for callers that name none. */
  readonly cardDialect: CardDialect;
}

export type CardDialect = Extract<A2aVersion, "1.0" | "0.3">;

const CACHED_S = 60;

/** Cards over HTTP: the relay's, each agent's as callers need it, and as its owner wrote it. */
export function cardRoutes(cards: A2aCardService, { cardDialect }: CardRouteSettings): readonly Route[] {
  const { relayCards, agentCards } = a2aEndpoints;
  // The default dialect of each path.
  const ofRelay = [
    [relayCards.current, cardDialect],
    [relayCards.old, "0.3"],
    [relayCards.legacy, cardDialect],
  ] as const;
  const ofAgents = [
    [operations.agents.card, cardDialect],
    [agentCards.old, "0.3"],
    [agentCards.legacy, cardDialect],
    [agentCards.currentAtEndpoint, cardDialect],
    [agentCards.oldAtEndpoint, "0.3"],
    [agentCards.legacyAtEndpoint, cardDialect],
  ] as const;
  return [
    ...ofRelay.map(([operation, dialect]) =>
      route(operation, async (call) => {
        const tenant = call.tenant === undefined ? DEFAULT_TENANT : parseTenantName(call.tenant);
        return cardAnswer(call, cards.relayCard(tenant), writerFor(call, dialect));
      }),
    ),
    ...ofAgents.map(([operation, dialect]) =>
      route(operation, async (call) => {
        const write = writerFor(call, dialect);
        return cardAnswer(call, await cards.agentCard(call.principal, call.params.id), write);
      }),
    ),
    route(agentCards.written, async (call) => {
      const written = await cards.writtenCard(call.principal, call.params.id);
      return cardAnswer(call, written, (card) => card);
    }),
  ];
}

type CardWriter = (card: AgentCard) => AgentCard;

/** The caller's version, else the path's. Throws for an unknown one. */
function writerFor(call: OpenCall, dialect: CardDialect): CardWriter {
  const { version = dialect } = readHeaders(call);
  return (card) => A2A_DIALECTS[version].writeCard(card);
}

function cardAnswer(call: OpenCall, { card, changedAtMs }: ServedCard, write: CardWriter): Answer<never> {
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
