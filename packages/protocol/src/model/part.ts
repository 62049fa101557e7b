import { type Static, Type } from "typebox";
import { LIMITS } from "../base/limits.ts";
import { type Frozen, openObject } from "../base/schema.ts";

/**
 * A2A parts and artifacts as A2A JSON. The relay carries them without interpreting them: unknown members stay, and so
 * does every dialect's discriminator (`kind`, `type`, none). The A2A transport translates.
 */
export type Part = Readonly<Record<string, unknown>>;
export const PartSchema = Type.Unsafe<Part>(Type.Object({}, { additionalProperties: true, title: "Part" }));

export const PartsSchema = Type.Array(PartSchema, { minItems: 1, maxItems: LIMITS.partsMax });

export const ArtifactSchema = Type.Object(
  {
    artifactId: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax })),
    artifact_id: Type.Optional(Type.String({ minLength: 1, maxLength: LIMITS.idCharsMax })),
    name: Type.Optional(Type.String({ maxLength: LIMITS.subjectCharsMax })),
    description: Type.Optional(Type.String()),
    parts: PartsSchema,
  },
  { additionalProperties: true, title: "Artifact" },
);
export type ArtifactInput = Static<typeof ArtifactSchema>;

/** An artifact as the relay stores it: with an id, in A2A's camelCase. */
export const StoredArtifactSchema = openObject(
  { artifactId: Type.String(), parts: Type.Array(PartSchema) },
  "StoredArtifact",
);
export type Artifact = Frozen<Static<typeof StoredArtifactSchema>>;

/** The text of all text parts, whatever dialect they are written in. */
export function textOfParts(parts: readonly Part[]): string {
  return parts
    .map((part) => part["text"])
    .filter((text): text is string => typeof text === "string")
    .join("\n");
}
