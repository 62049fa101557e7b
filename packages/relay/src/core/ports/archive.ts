/** Keeps retired messages and events, before the store removes them. */
export interface Archive {
  /** Appends the values to the named stream and answers once they are on disk. */
  append(stream: "messages" | "events", values: readonly object[]): Promise<void>;
}

/** A copy of a chain's end: the tenant's chain had this event, with this hash. */
export interface Anchor {
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
  readonly atMs: number;
}

/**
 * Where anchors are kept: outside the log, so that an edit of the log does not reach them.
 * `unavailable`, with a sentence that says why, when they cannot be read or written.
 */
export interface Anchors {
  /** False: other relays on the store keep anchors too, where this relay cannot read them. */
  readonly areAll: boolean;
  /** The newest of every tenant that has one. */
  latest(): Promise<ReadonlyMap<string, Anchor>>;
  /** All that are still kept of one tenant, oldest first. */
  history(tenant: string): AsyncIterable<Anchor>;
  /** Answers once they are on disk. */
  keep(anchors: readonly Anchor[]): Promise<void>;
}
