/** Where retired rows go before they leave the store: lines of JSON a person can read. */
export interface Archive {
  /** Appends the lines to the named stream and answers once they are on disk. */
  append(stream: "messages" | "events", lines: readonly string[]): Promise<void>;
}

/** What somebody beside the log has seen of it: that the tenant's chain had this event, with this hash. */
export interface Anchor {
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
  readonly atMs: number;
}

/**
 * Where anchors are kept: outside the log, so that whoever edits or cuts the log has not edited them too.
 * `unavailable`, with a sentence that says why, when they cannot be read or written.
 */
export interface Anchors {
  /** The newest of every tenant; a tenant of which none was kept is not there. */
  latest(): Promise<ReadonlyMap<string, Anchor>>;
  /** All that are still kept of one tenant, in the order they were kept. */
  history(tenant: string): AsyncIterable<Anchor>;
  /** Answers once they are on disk. */
  keep(anchors: readonly Anchor[]): Promise<void>;
}
