import type { Clash } from "../../core/ports/relay-store.ts";

/** Ends a job whose change somebody else overtook; the savepoint undoes what it had written. */
export class ClashError extends Error {
  override readonly name: string = "ClashError";
  readonly clash: Clash;

  constructor(clash: Clash) {
    super(`another caller was faster: ${clash}`);
    this.clash = clash;
  }
}
