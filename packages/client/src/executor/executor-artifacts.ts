import type { Artifact } from "@a2a-relay/protocol";
import type { AddArtifactOptions, AgentTask } from "../agent/agent-task.ts";
import { withArtifactId } from "../http/idempotency.ts";
import type { ExecutorSdk } from "./executor-sdk.ts";

/**
 * The artifacts of an executor's turn. An executor with random artifact ids would leave half an artifact behind when
 * it is killed and run again; so an artifact with a new id replaces one with the same name from the earlier run,
 * unless this run has used that one. Executors with stable ids keep their ids.
 */
export class ExecutorArtifacts {
  readonly #sdk: ExecutorSdk;
  readonly #task: AgentTask;
  /** Artifacts of an earlier, unfinished run. */
  readonly #left: Artifact[];
  readonly #ids = new Map<string, string>();
  /** Complete artifacts, in the SDK's JSON. */
  readonly #whole = new Map<string, string>();

  constructor(sdk: ExecutorSdk, task: AgentTask) {
    this.#sdk = sdk;
    this.#task = task;
    const { artifacts } = task.view;
    for (const artifact of artifacts) this.#whole.set(artifact.artifactId, this.#written(artifact));
    // In a task with several turns it is unknown which artifacts belong to the unfinished turn.
    this.#left = task.attempt > 1 && !task.isFollowUp ? [...artifacts] : [];
  }

  async put(artifact: Artifact, how: AddArtifactOptions): Promise<void> {
    const artifactId = this.#idOf(artifact);
    const named = { ...artifact, ...(artifactId === "" ? {} : { artifactId }) };
    // As in the SDK, appending to a missing artifact creates it. A final chunk without content needs a part.
    const append = how.append === true && this.#task.hasArtifact(artifactId);
    const parts = artifact.parts.length === 0 ? [{ text: "" }] : [...artifact.parts];
    await this.#task.addArtifact(withArtifactId({ ...named, parts }), { ...how, append });
    if (append) this.#whole.delete(artifactId);
    else this.#whole.set(artifactId, this.#written(named));
  }

  /** Unless the task has it already, as when a task is published again. */
  async putWhole(artifact: Artifact): Promise<void> {
    const artifactId = this.#idOf(artifact);
    const isKnown = this.#whole.get(artifactId) === this.#written({ ...artifact, artifactId });
    if (!isKnown) await this.put(artifact, { lastChunk: true });
  }

  #idOf({ artifactId = "", name = "" }: Partial<Artifact>): string {
    const known = this.#ids.get(artifactId);
    if (known !== undefined || artifactId === "") return known ?? "";
    const exists = this.#task.hasArtifact(artifactId);
    const left = this.#take((each) =>
      exists ? each.artifactId === artifactId : (each["name"] ?? "") === name,
    );
    const id = exists ? artifactId : (left?.artifactId ?? artifactId);
    this.#ids.set(artifactId, id);
    return id;
  }

  #take(fits: (left: Artifact) => boolean): Artifact | undefined {
    const index = this.#left.findIndex(fits);
    return index === -1 ? undefined : this.#left.splice(index, 1)[0];
  }

  #written(artifact: Artifact): string {
    return JSON.stringify(this.#sdk.Artifact.toJSON(this.#sdk.Artifact.fromJSON(artifact)));
  }
}
