/** Where retired rows go before they leave the store: lines of JSON a person can read. */
export interface Archive {
  /** Appends the lines to the named stream and answers once they are on disk. */
  append(stream: "messages" | "events", lines: readonly string[]): Promise<void>;
}
