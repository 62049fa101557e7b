const id = (number: number): string => `019e06ea-0000-7000-8000-${String(number).padStart(12, "0")}`;

/** The names in the examples. A relay chooses ids itself, so a sender of the examples puts in those that it got. */
export const EXAMPLE_IDS = {
  agent: "lulu@laptop",
  peer: "zhiwei@studio",
  /** Has a push endpoint. */
  pushed: "kames@desk",
  /** A request from the peer to the agent, leased by the agent, with its task. */
  message: id(1),
  task: id(2),
  thread: id(3),
  lease: id(4),
  /** The result of an earlier request of the agent to the peer, leased by the agent. */
  result: id(5),
  resultLease: id(6),
  queueTask: "review-12",
  key: `key_${id(7)}`,
  signingKey: `key_${id(8)}`,
  capability: `cap_${id(9)}`,
  tenant: "acme",
} as const;
