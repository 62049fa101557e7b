import type { Artifact } from "@a2a-relay/protocol";
import type { AddArtifactOptions, AgentTask } from "../agent/agent-task.ts";
import { withArtifactId } from "../http/idempotency.ts";
import type { ExecutorSdk } from "./executor-sdk.ts";

/**
 * The artifacts of an executor's turn. Executors that make up a new id for each artifact would leave half of one behind
 * when they are ended in the middle and run again; so an artifact of a new id takes the place of one of the same name
 * that a run before has left and this one has not touched. Whoever goes on where it was keeps to the ids.
 */
export class ExecutorArtifacts {
  readonly #sdk: ExecutorSdk;
  readonly #task: AgentTask;
  /** Of a run that was ended in the middle. */
  readonly #left: Artifact[];
  readonly #ids = new Map<string, string>();
  /** Those that are known whole, as the SDK writes them. */
  readonly #whole = new Map<string, string>();

  constructor(sdk: ExecutorSdk, task: AgentTask) {
    this.#sdk = sdk;
    this.#task = task;
    const { artifacts } = task.view;
    for (const artifact of artifacts) this.#whole.set(artifact.artifactId, this.#written(artifact));
    // Of a task with several turns nobody can say which artifacts are of the turn that was not finished.
    this.#left = task.attempt > 1 && !task.isFollowUp ? [...artifacts] : [];
  }

  async put(artifact: Artifact, how: AddArtifactOptions): Promise<void> {
    const artifactId = this.#idOf(artifact);
    const named = { ...artifact, ...(artifactId === "" ? {} : { artifactId }) };
    // As in the SDK, what is added to nothing begins it; and an end without content needs a part to be told with.
    const append = how.append === true && this.#task.hasArtifact(artifactId);
    const parts = artifact.parts.length === 0 ? [{ text: "" }] : [...artifact.parts];
    await this.#task.addArtifact(withArtifactId({ ...named, parts }), { ...how, append });
    if (append) this.#whole.delete(artifactId);
    else this.#whole.set(artifactId, this.#written(named));
  }

  /** Unless it is there already, as it is in a task that is published again. */
  async putWhole(artifact: Artifact): Promise<void> {
    const artifactId = this.#idOf(artifact);
    const isKnown = this.#whole.get(artifactId) === this.#written({ ...artifact, artifactId });
    if (!isKnown) await this.put(artifact, { lastChunk: true });
  }

  #idOf({ artifactId = "", name = "" }: Partial<Artifact>): string {
    const known = this.#ids.get(artifactId);
    if (known !== undefined || artifactId === "") return known ?? "";
    const isThere = this.#task.hasArtifact(artifactId);
    const left = this.#take((each) =>
      isThere ? each.artifactId === artifactId : (each["name"] ?? "") === name,
    );
    const id = isThere ? artifactId : (left?.artifactId ?? artifactId);
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
