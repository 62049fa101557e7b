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
  if (parts.length > LIMITS.partsMax) {
    throw new RelayError("too_large", `artifact ${next.artifactId}: at most ${LIMITS.partsMax} parts`);
  }
  return { ...before, ...next, parts };
}

function assertRoom(count: number): void {
  if (count <= LIMITS.artifactsMax) return;
  throw new RelayError("too_large", `artifacts: a task has at most ${LIMITS.artifactsMax}`);
}
