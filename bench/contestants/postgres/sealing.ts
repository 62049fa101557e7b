/** Flags of a relay: every round seals its own events, instead of one round those of ten seconds. */
export const SEALING = { "anchor-interval-ms": "500" };
