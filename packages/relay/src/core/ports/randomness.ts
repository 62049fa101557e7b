/** Fills the array with randomness that nobody can guess. */
export type Randomness = (bytes: Uint8Array) => void;
