import { type Artifact, type ArtifactInput, LIMITS, RelayError } from "@a2a-relay/protocol";

/** An artifact in A2A's own spelling, with an id. */
export function readArtifact(input: ArtifactInput, makeId: () => string): Artifact {
  const { artifact_id: snakeId, artifactId, ...rest } = input;
  return { artifactId: artifactId ?? snakeId ?? makeId(), ...rest };
}

/** Known ids are replaced in their place, or added to; new ones go to the end. */
export function putArtifact(known: readonly Artifact[], next: Artifact, append: boolean): Artifact {
  const before = known.find((artifact) => artifact.artifactId === next.artifactId);
  if (before === undefined) {
    if (append) {
      throw new RelayError("not_found", `artifact: there is no artifact ${next.artifactId} to append to`);
    }
    assertRoom(known.length + 1);
    return next;
  }
  if (!append) return next;
  const parts = [...before.parts, ...next.parts];
  if (parts.length > LIMITS.artifactPartsMax) {
    throw new RelayError(
      "too_large",
      `artifact ${next.artifactId}: at most ${LIMITS.artifactPartsMax} parts`,
    );
  }
  return { ...before, ...next, parts };
}

/** The artifacts of a task after these were put. */
export function withArtifacts(known: readonly Artifact[], put: readonly Artifact[]): readonly Artifact[] {
  const byId = new Map([...known, ...put].map((artifact) => [artifact.artifactId, artifact]));
  return [...byId.values()];
}

/** Counted together, so that no way of cutting a result into pieces makes it larger. */
export function assertArtifactBytes(artifacts: readonly Artifact[]): void {
  const limit = LIMITS.taskArtifactBytesMax;
  const bytes = Buffer.byteLength(JSON.stringify(artifacts));
  if (bytes <= limit) return;
  throw new RelayError(
    "too_large",
    `artifacts: those of one task have at most ${limit} bytes as JSON, these would have ${bytes}`,
    { details: { limit } },
  );
}

function assertRoom(count: number): void {
  if (count <= LIMITS.artifactsMax) return;
  throw new RelayError("too_large", `artifacts: a task has at most ${LIMITS.artifactsMax}`);
}
