const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * Every bound of the protocol, with its unit in the name. `docs/reference/limits.md` explains each one;
 * a test compares the two.
 */
export const LIMITS = {
  /** One HTTP request body, and so one message. */
  bodyBytesMax: 1 * MIB,
  /** What the relay adds to a message: ids, times, receipts. It does not count against the sender. */
  messageBytesAdded: 8 * KIB,
  /** The body of one `POST /messages/batch`: more than one message's worth, still bounded. */
  batchBodyBytesMax: 16 * MIB,
  /** How much of a too large body the relay reads and discards, so that the 413 reaches the client. */
  drainBytesMax: 64 * MIB,
  drainMsMax: 10 * SECOND_MS,
  /** Nesting of JSON in a message; deeper input is an attack on parsers, not a message. */
  jsonDepthMax: 64,
  batchMessagesMax: 500,
  idCharsMax: 200,
  /** One registration, as JSON: lists of agents carry all of it. */
  registrationBytesMax: 64 * KIB,
  aliasesMax: 20,
  displayNameCharsMax: 200,
  skillsMax: 100,
  queriesMax: 50,
  subjectCharsMax: 500,
  partsMax: 100,
  idempotencyKeyCharsMax: 200,
  reasonCharsMax: 2_000,
  urlCharsMax: 2_000,
  artifactsMax: 100,
  /** All artifacts of one task, as JSON: every answer about the task carries them. */
  taskArtifactBytesMax: 8 * MIB,
  /** Parts of one artifact that came in pieces: each piece adds at least one. */
  artifactPartsMax: 2_000,
  /** Stored updates of one task, and their total size as JSON. The final update always fits. */
  taskUpdatesMax: 10_000,
  taskUpdateBytesMax: 16 * MIB,
  /** Open deliveries of one agent; the next send is answered `mailbox_full`. */
  mailboxOpenMax: 100_000,
  /** The messages of one answer, as JSON; the rest comes with the next answer. Always at least one message. */
  answerBytesMax: 8 * MIB,
  readLimitDefault: 50,
  readLimitMax: 500,
  ackMax: 1_000,
  leaseCountMax: 100,
  leaseMsMin: 100,
  leaseMsMax: 24 * HOUR_MS,
  /** After this many leases without an answer, automatic requeues stop and the delivery is dead. */
  leaseAttemptsMax: 3,
  waitMsMax: 60 * SECOND_MS,
  /** Long polls that may wait at one time. */
  waitsMax: 20_000,
  /** The same for one agent, or for one operator key. */
  waitsOfCallerMax: 1_000,
  /** TCP connections one relay holds open. */
  connectionsMax: 30_000,
  /** Connections for gRPC, calls under way on each of them, and how long one stays without a call. */
  grpcConnectionsMax: 5_000,
  grpcCallsOfConnectionMax: 100,
  grpcIdleMsMax: 5 * MINUTE_MS,
  messageTtlMsDefault: 7 * DAY_MS,
  messageTtlMsMax: 365 * DAY_MS,
  agentTtlMsMin: SECOND_MS,
  agentTtlMsMax: 365 * DAY_MS,
  listLimitDefault: 100,
  listLimitMax: 500,
  /** Journal rows or messages one filtered listing may walk before it answers with a cursor. */
  scanRowsMax: 20_000,
  treeTasksMax: 1_000,
  sendKeyKeptMs: 14 * DAY_MS,
  tenantCharsMax: 64,
  /** Keys of one agent that work at one time: they are all revoked in one commit when it leaves. */
  agentKeysMax: 100,
  /** How long a rotated key keeps working, unless its owner says otherwise. */
  keyOverlapMsDefault: 24 * HOUR_MS,
  keyOverlapMsMax: 30 * DAY_MS,
  /** The scope of one capability, as JSON: every check of it reads all of it. */
  capabilityScopeBytesMax: 4 * KIB,
  /** Capabilities of one agent for one action: every check reads all of them. */
  capabilitiesOfActionMax: 100,
  /** How old a proof of possession may be, and how far ahead its clock. */
  keyProofAgeMsMax: 5 * MINUTE_MS,
  /** Refused callers without a valid key that the journal records; the rest are only counted. */
  unauthenticatedEventsPerMinuteMax: 60,
  /** Cached results of idempotent work: how long, and how many for each tenant. */
  cachedResultKeptMs: 7 * DAY_MS,
  cachedResultsMax: 10_000,
  /** How long a leased result waits for its acknowledgement on the task-queue wire. */
  resultLeaseMsDefault: MINUTE_MS,
  queueLimitDefault: 10,
  /** The messages of one step of a stream, as JSON: all that a connection holds for a reader. Always at least one. */
  streamPageBytesMax: 64 * KIB,
  streamPageMessagesMax: 200,
  /** Concurrent requests of one socket; the relay reads the next one when there is room. */
  socketRequestsMax: 64,
  /** Unsent answers of one socket; above this the relay reads no more requests from it. */
  socketBufferBytesMax: 1 * MIB,
  /** The stored part of the answer to a push. */
  pushAnswerBytesMax: 1 * KIB,
  /** Attempts of one push, and the longest time from the first to the last. */
  pushAttemptsMax: 20,
  pushAttemptMsMax: 7 * DAY_MS,
  /** Stored attempts of one push: replays may make many more. */
  pushAttemptsKept: 100,
  /** Pushes under way at one time, to one endpoint and to all of them. */
  pushesOfEndpointMax: 8,
  pushesUnderWayMax: 200,
  /** Of those, pushes about A2A tasks: for one owner, and from one owner to one receiver. */
  taskPushesOfOwnerMax: 40,
  taskPushesOfReceiverMax: 8,
  /** The longest `Retry-After` of a receiver that the relay honours. */
  pushRetryAfterMsMax: 1 * HOUR_MS,
  /** Push configurations of one party to an A2A task, and the longest credential in one. */
  pushConfigsOfTaskMax: 10,
  pushCredentialCharsMax: 4_096,
  /** Remote agents, identified by their URL, that the agents of one tenant write to. */
  externalAgentsMax: 1_000,
  /** The largest card of a remote agent, and the largest answer: a task with all its artifacts. */
  remoteCardBytesMax: 256 * KIB,
  remoteAnswerBytesMax: 12 * MIB,
  /** Concurrent polls of tasks at remote agents: in all, and of one tenant at one origin. */
  remotePollsMax: 64,
  remotePollsOfOriginMax: 8,
  /** Relays that a message may pass on its way over A2A; more hops mean a loop. */
  a2aHopsMax: 10,
  /** How long a replaced push secret keeps signing, unless its owner says otherwise. */
  pushSecretOverlapMsDefault: 24 * HOUR_MS,
  pushSecretOverlapMsMax: 30 * DAY_MS,
  /** The greatest age of a signed message, and how far ahead its clock may be. */
  signedMessageAgeMsMax: 5 * MINUTE_MS,
  nonceCharsMax: 200,
  /** All signatures of one message: about ten, for a sender that signs with several secrets. */
  signatureCharsMax: 500,
} as const;
