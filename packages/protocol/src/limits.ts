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
  /** What the relay adds to a message: ids, times, places. It does not count against its sender. */
  messageBytesAdded: 8 * KIB,
  /** The body of one `POST /messages/batch`: more than one message's worth, still bounded. */
  batchBodyBytesMax: 16 * MIB,
  /** What is read and thrown away after a body proved too large, so that the 413 reaches its client. */
  drainBytesMax: 64 * MIB,
  drainMsMax: 10 * SECOND_MS,
  /** Nesting of JSON in a message; deeper input is an attack on parsers, not a message. */
  jsonDepthMax: 64,
  batchMessagesMax: 500,
  idCharsMax: 200,
  /** What one agent says of itself, as JSON: lists of agents carry all of it. */
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
  /** Steps of one task that those who follow it can be shown again, and all of them as JSON. Its end always fits. */
  taskUpdatesMax: 10_000,
  taskUpdateBytesMax: 16 * MIB,
  /** Open mail of one agent; the next send is answered `mailbox_full`. */
  mailboxOpenMax: 100_000,
  /** The messages of one answer, as JSON; what does not fit comes with the next. Always at least one message. */
  answerBytesMax: 8 * MIB,
  readLimitDefault: 50,
  readLimitMax: 500,
  ackMax: 1_000,
  leaseCountMax: 100,
  leaseMsMin: 100,
  leaseMsMax: 24 * HOUR_MS,
  /** A worker that never answers ends here: automatic requeues stop and the mail is dead. */
  leaseAttemptsMax: 3,
  waitMsMax: 60 * SECOND_MS,
  /** Long polls that may wait at one time. */
  waitsMax: 20_000,
  /** And of those of one agent, or of one key of an operator. */
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
  /** A rotated key goes on working for so long unless its owner says otherwise. */
  keyOverlapMsDefault: 24 * HOUR_MS,
  keyOverlapMsMax: 30 * DAY_MS,
  /** The scope of one capability, as JSON: every check of it reads all of it. */
  capabilityScopeBytesMax: 4 * KIB,
  /** What one agent may hold for one action: every check looks at all of them. */
  capabilitiesOfActionMax: 100,
  /** How old a proof of possession may be, and how far ahead its clock. */
  keyProofAgeMsMax: 5 * MINUTE_MS,
  /** Refused callers without a known key that are written into the journal; the rest is counted. */
  unauthenticatedEventsPerMinuteMax: 60,
  /** Results kept to answer idempotent work again without doing it twice: how long, and how many a tenant. */
  cachedResultKeptMs: 7 * DAY_MS,
  cachedResultsMax: 10_000,
  /** How long a result that was handed out waits to be acknowledged on the task-queue wire. */
  resultLeaseMsDefault: MINUTE_MS,
  queueLimitDefault: 10,
  /** The messages of one step of a stream, as JSON: all that a connection holds for a reader. Always at least one. */
  streamPageBytesMax: 64 * KIB,
  streamPageMessagesMax: 200,
  /** Requests of one socket that are under way at one time; the next ones are read when there is room. */
  socketRequestsMax: 64,
  /** Answers that a socket holds for a reader that does not take them; then it is asked nothing more. */
  socketBufferBytesMax: 1 * MIB,
  /** What is kept of the answer to a push. */
  pushAnswerBytesMax: 1 * KIB,
  /** Tries of one push, and how far apart the first and the last may lie. */
  pushAttemptsMax: 20,
  pushAttemptMsMax: 7 * DAY_MS,
  /** Attempts of one push that are kept: replays may make many more. */
  pushAttemptsKept: 100,
  /** Pushes under way at one time, to one endpoint and to all of them. */
  pushesOfEndpointMax: 8,
  pushesUnderWayMax: 200,
  /** Of those about A2A tasks: for one owner, and of them to one receiver. */
  taskPushesOfOwnerMax: 40,
  taskPushesOfReceiverMax: 8,
  /** A receiver that asks for more patience than this gets no more than this. */
  pushRetryAfterMsMax: 1 * HOUR_MS,
  /** Places where one party to an A2A task wants to be told of it, and each secret that is sent there. */
  pushConfigsOfTaskMax: 10,
  pushCredentialCharsMax: 4_096,
  /** Agents elsewhere, known by their URL, that the agents of one tenant write to. */
  externalAgentsMax: 1_000,
  /** What is read of an external agent's card, and of its answer: the artifacts of a task and what is around them. */
  remoteCardBytesMax: 256 * KIB,
  remoteAnswerBytesMax: 12 * MIB,
  /** Tasks at external agents that are looked at at one time: in all, and of one tenant at one origin. */
  remotePollsMax: 64,
  remotePollsOfOriginMax: 8,
  /** Relays that a message may pass through on its way over A2A; one that has come so far goes in a circle. */
  a2aHopsMax: 10,
  /** A replaced push secret goes on signing for so long unless its owner says otherwise. */
  pushSecretOverlapMsDefault: 24 * HOUR_MS,
  pushSecretOverlapMsMax: 30 * DAY_MS,
  /** How old a signed message may be that comes in by webhook, and how far ahead its clock. */
  signedMessageAgeMsMax: 5 * MINUTE_MS,
  nonceCharsMax: 200,
  /** All signatures of one message: about ten, for a sender that signs with several secrets. */
  signatureCharsMax: 500,
} as const;
