import { type Artifact, type ArtifactInput, LIMITS, RelayError } from "@a2a-relay/protocol";
import { bytesAsJson } from "../mechanisms/stored-json.ts";

/** The artifact with A2A's spelling of its id; one without an id gets a new one. */
export function readArtifact(input: ArtifactInput, makeId: () => string): Artifact {
  const { artifact_id: snakeId, artifactId, ...rest } = input;
  return { artifactId: artifactId ?? snakeId ?? makeId(), ...rest };
}

/** The artifact to store: `next` itself, or what it makes of the artifact with the same id that it appends to. */
export function putArtifact(present: readonly Artifact[], next: Artifact, append: boolean): Artifact {
  const before = present.find((artifact) => artifact.artifactId === next.artifactId);
  if (before === undefined) {
    if (append) {
      throw new RelayError("not_found", `artifact: there is no artifact ${next.artifactId} to append to`);
    }
    assertRoom(present.length + 1);
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

/** All artifacts of a task after `put`: one with a present id keeps its position, new ones follow. */
export function withArtifacts(present: readonly Artifact[], put: readonly Artifact[]): readonly Artifact[] {
  const byId = new Map([...present, ...put].map((artifact) => [artifact.artifactId, artifact]));
  return [...byId.values()];
}

/** The limit holds for all artifacts of a task together, however many there are. */
export function assertArtifactBytes(artifacts: readonly Artifact[]): void {
  const limit = LIMITS.taskArtifactBytesMax;
  const bytes = bytesAsJson(artifacts);
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
