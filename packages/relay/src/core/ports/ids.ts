/** Ids the relay makes. All are time-ordered: random ones double the cost of a large index. */
export interface Identifiers {
  agent(): string;
  capability(): string;
  key(): string;
  lease(): string;
  message(): string;
  pushConfig(): string;
  task(): string;
  thread(): string;
}

/** Fills the array with cryptographically secure random bytes. */
export type Randomness = (bytes: Uint8Array) => void;
