import { type Static, Type } from "typebox";
import { LIMITS } from "../base/limits.ts";
import { type Frozen, instantSchema, openObject } from "../base/schema.ts";
import { PUSH_MODES } from "./push.ts";

const name = Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax });

export const SkillSchema = Type.Object(
  {
    id: name,
    description: Type.Optional(Type.String({ maxLength: LIMITS.reasonCharsMax })),
    tags: Type.Optional(Type.Record(Type.String(), Type.String())),
  },
  { additionalProperties: true, title: "Skill" },
);
export type Skill = Static<typeof SkillSchema>;

/** An A2A agent card, possibly partial. The relay stores it as written and completes it when it serves it. */
export type AgentCard = Readonly<Record<string, unknown>>;
export const AgentCardSchema = Type.Unsafe<AgentCard>(
  Type.Object({}, { additionalProperties: true, title: "AgentCard" }),
);

/** A card as the relay serves it to callers. */
export const ServedCardSchema = openObject({ name: Type.String() }, "ServedCard");

/**
 * Proves that the caller holds the private key: an Ed25519 signature over the lines
 * `a2a-relay.register.v1`, tenant, agent id, public key in base58 and `signed_at`, joined by line feeds.
 */
export const KeyProofSchema = Type.Object(
  {
    signed_at: Type.String({ maxLength: 40 }),
    signature_b58: Type.String({ maxLength: LIMITS.idCharsMax }),
  },
  { additionalProperties: false, title: "KeyProof" },
);
export type KeyProof = Static<typeof KeyProofSchema>;

/** The text that a proof of possession signs. */
export function keyProofText(claim: {
  readonly tenant: string;
  readonly agent_id: string;
  readonly pubkey_b58: string;
  readonly signed_at: string;
}): string {
  return ["a2a-relay.register.v1", claim.tenant, claim.agent_id, claim.pubkey_b58, claim.signed_at].join(
    "\n",
  );
}

export const RegisterRequestSchema = Type.Object(
  {
    agent_id: Type.Optional(name),
    card: Type.Optional(AgentCardSchema),
    agent_card: Type.Optional(AgentCardSchema),
    extended_card: Type.Optional(
      Type.Union([AgentCardSchema, Type.Null()], {
        description: "A card for authenticated callers. Null removes it; absent: as before.",
      }),
    ),
    direct: Type.Optional(
      Type.Boolean({
        description:
          "Callers may be shown the interfaces in the card, to go past the relay. False unless set.",
      }),
    ),
    aliases: Type.Optional(Type.Array(name, { maxItems: LIMITS.aliasesMax, uniqueItems: true })),
    display_name: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.displayNameCharsMax })),
    callback_url: Type.Optional(Type.Union([Type.String({ maxLength: LIMITS.urlCharsMax }), Type.Null()])),
    push: Type.Optional(
      Type.Union([Type.Enum(PUSH_MODES), Type.Null()], {
        description:
          "How the relay pushes messages to callback_url: as webhooks, or over A2A. Null switches it off; absent: as before.",
      }),
    ),
    notice: Type.Optional(
      Type.Boolean({
        description: "Push only a notice, not the message. False unless it was set.",
      }),
    ),
    push_ack: Type.Optional(
      Type.Boolean({
        description:
          "A push that is answered with 2xx is acknowledged, not only delivered. False unless it was set.",
      }),
    ),
    skills: Type.Optional(Type.Array(SkillSchema, { maxItems: LIMITS.skillsMax })),
    representative_queries: Type.Optional(
      Type.Array(Type.String({ maxLength: LIMITS.reasonCharsMax }), { maxItems: LIMITS.queriesMax }),
    ),
    ttl_ms: Type.Optional(
      Type.Union([
        Type.Integer({ minimum: LIMITS.agentTtlMsMin, maximum: LIMITS.agentTtlMsMax }),
        Type.Null(),
      ]),
    ),
    pubkey_b58: Type.Optional(
      Type.String({
        maxLength: LIMITS.idCharsMax,
        description:
          "The agent's own Ed25519 public key, with key_proof. Absent: the relay holds one for it.",
      }),
    ),
    key_proof: Type.Optional(KeyProofSchema),
  },
  { additionalProperties: false, title: "RegisterRequest" },
);
export type RegisterRequest = Static<typeof RegisterRequestSchema>;

export const PRESENCES = ["online", "offline", "unknown"] as const;
export type Presence = (typeof PRESENCES)[number];

/** An agent in answers of the API. */
export const AgentViewSchema = Type.Object(
  {
    agent_id: Type.String(),
    display_name: Type.String(),
    slug: Type.String(),
    aliases: Type.Array(Type.String()),
    skills: Type.Array(SkillSchema),
    representative_queries: Type.Array(Type.String()),
    callback_url: Type.Optional(Type.String({ description: "For the agent itself and for operators." })),
    push: Type.Optional(
      Type.Enum(PUSH_MODES, { description: "How messages are pushed there; absent when they are not." }),
    ),
    ttl_ms: Type.Optional(Type.Integer()),
    presence: Type.Enum(PRESENCES),
    pubkey_b58: Type.Optional(Type.String({ description: "The agent's Ed25519 public key in base58." })),
    custodial: Type.Optional(Type.Boolean({ description: "The relay holds the private key." })),
    registered_at: instantSchema,
    last_seen_at: Type.Optional(instantSchema),
    agent_card: AgentCardSchema,
  },
  { title: "Agent" },
);
export type AgentView = Frozen<Static<typeof AgentViewSchema>>;
