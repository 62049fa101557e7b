import { type AgentId, BatchRequestSchema, isTerminal, LIMITS, RelayError } from "@a2a-relay/protocol";
import { Type } from "typebox";
import type { Principal } from "../access/principal.ts";
import { combine, decideAndCommit, type Decision } from "../mechanisms/commit-retry.ts";
import { shapeParserOf } from "../mechanisms/schema-check.ts";
import type { Changes } from "../ports/relay-store.ts";
import type { SendResult } from "./decide-send.ts";
import { keyName, type MessageDraft, parseMessageDraft } from "./message-draft.ts";
import { address, type AddressedMessage, loadAndDecide, sendAddressed, type SendParts } from "./send.ts";

/** The messages are parsed one by one: a bad one fails alone. */
const MessagesSchema = Type.Object(
  {
    messages: Type.Array(Type.Unknown(), { minItems: 1, maxItems: LIMITS.batchMessagesMax }),
    atomic: BatchRequestSchema.properties.atomic,
  },
  { additionalProperties: false },
);
const parseBatch = shapeParserOf(MessagesSchema, "batch");

/** Messages in one commit: few enough that other callers do not wait long for theirs. */
const COMMIT_MESSAGES_MAX = 100;

/** The result of one message of a batch. */
export type SendOutcome = SendResult | RelayError;

interface DecidedMessage {
  readonly index: number;
  readonly message: AddressedMessage;
  readonly decision: Decision<SendResult>;
}

/** Each message has its own outcome, in order, unless `atomic` asks for all or none. */
export async function sendBatch(
  parts: SendParts,
  principal: Principal,
  input: unknown,
): Promise<readonly SendOutcome[]> {
  const { messages, atomic } = parseBatch(input);
  if (atomic === true) return sendAtomic(parts, principal, messages);
  const outcomes: SendOutcome[] = [];
  let group: DecidedMessage[] = [];
  const commitGroup = async (): Promise<void> => {
    const decided = group;
    group = [];
    const results = await commitTogether(parts, principal, decided);
    for (const [n, { index }] of decided.entries()) outcomes[index] = results[n] as SendOutcome;
  };
  for (const [index, each] of messages.entries()) {
    try {
      const draft = parseMessageDraft(each);
      // It may refer to a message before it in the batch, which must be stored to be found.
      if (refersToOthers(draft)) await commitGroup();
      const message = await address(parts, principal, draft);
      const decision = await loadAndDecide(parts, principal, message);
      group.push({ index, message, decision });
      // The next message may be for the agent that this one registers.
      if (newAgentsOf(decision).length > 0) await commitGroup();
    } catch (reason) {
      outcomes[index] = RelayError.from(reason);
    }
    if (group.length >= COMMIT_MESSAGES_MAX) await commitGroup();
  }
  await commitGroup();
  return outcomes;
}

function refersToOthers({ replyTo, taskId }: MessageDraft): boolean {
  return replyTo !== undefined || taskId !== undefined;
}

/** Remote agents that become registered with the message. */
function newAgentsOf({ changes }: Decision<SendResult>): readonly AgentId[] {
  return (changes?.agents ?? []).map(({ id }) => id);
}

/** One commit costs far less than many. After a clash each message is sent alone. */
async function commitTogether(
  parts: SendParts,
  principal: Principal,
  group: readonly DecidedMessage[],
): Promise<readonly SendOutcome[]> {
  const changes = group.flatMap(({ decision }) => decision.changes ?? []);
  try {
    if (changes.length === 0) return group.map(({ decision }) => decision.answer);
    const outcome = await parts.store.commit(combine(principal.tenant, changes));
    if (outcome.committed) return group.map(({ decision }) => decision.answer);
  } catch (reason) {
    const error = RelayError.from(reason);
    return group.map(({ decision }) => (decision.changes === undefined ? decision.answer : error));
  }
  const outcomes: SendOutcome[] = [];
  for (const { message, decision } of group) {
    const sent = decision.changes === undefined ? decision.answer : sendAddressed(parts, principal, message);
    outcomes.push(await Promise.resolve(sent).catch((reason: unknown) => RelayError.from(reason)));
  }
  return outcomes;
}

async function sendAtomic(
  parts: SendParts,
  principal: Principal,
  inputs: readonly unknown[],
): Promise<readonly SendResult[]> {
  const messages: AddressedMessage[] = [];
  for (const [index, input] of inputs.entries()) {
    messages.push(await namingMessage(index, () => addressAtomic(parts, principal, input)));
  }
  return decideAndCommit<readonly SendResult[]>(parts.store, async (clash) => {
    if (clash === "mailbox") {
      throw new RelayError(
        "mailbox_full",
        "messages: a mailbox has no room for all of them; nothing was sent",
      );
    }
    const decisions: Decision<SendResult>[] = [];
    const newAgents = new Set<AgentId>();
    for (const [index, message] of messages.entries()) {
      const decision = await namingMessage(index, () =>
        loadAndDecide(parts, principal, message, clash, newAgents),
      );
      decisions.push(decision);
      for (const id of newAgentsOf(decision)) newAgents.add(id);
    }
    assertIndependent(decisions.map(({ changes }) => changes));
    const changes = decisions.flatMap((decision) => decision.changes ?? []);
    return {
      changes: changes.length === 0 ? undefined : combine(principal.tenant, changes),
      answer: decisions.map(({ answer }) => answer),
    };
  });
}

async function addressAtomic(
  parts: SendParts,
  principal: Principal,
  input: unknown,
): Promise<AddressedMessage> {
  const draft = parseMessageDraft(input);
  if (draft.kind !== "heartbeat") return address(parts, principal, draft);
  throw new RelayError("invalid_argument", "type: a heartbeat cannot be part of an atomic batch");
}

/** An error of an atomic batch says which message it is about. */
async function namingMessage<Result>(index: number, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (reason) {
    const error = RelayError.from(reason);
    throw new RelayError(error.code, `messages[${index}]: ${error.message}; nothing was sent`, {
      cause: reason,
      details: { ...error.details, index },
    });
  }
}

/**
 * Messages of one commit are decided without seeing each other, so no two of them may write the same record: a retry
 * would clash again. A message that was sent before has no changes.
 */
function assertIndependent(decided: readonly (Changes | undefined)[]): void {
  const firstBy = new Map<string, number>();
  for (const [index, changes] of decided.entries()) {
    for (const written of changes === undefined ? [] : recordsWrittenBy(changes)) {
      const first = firstBy.get(written);
      if (first !== undefined) {
        throw new RelayError(
          "conflict",
          `messages[${index}]: cannot share an atomic batch with messages[${first}], which has or changes the same ${written}; nothing was sent`,
          { details: { index, other: first } },
        );
      }
      firstBy.set(written, index);
    }
  }
}

/** As an error names them. */
function recordsWrittenBy(changes: Changes): ReadonlySet<string> {
  const { sendKeys = [], messages = [], deliveries = [], tasks = [], capabilities = [] } = changes;
  return new Set([
    ...sendKeys.map(
      ({ sender, recipient, key }) => `idempotency key "${keyName(key)}" from ${sender} to ${recipient}`,
    ),
    ...messages.map(({ id }) => `message id ${id}`),
    ...tasks.map(({ id }) => `task ${id}`),
    ...tasks
      .filter(({ resultKey, state }) => resultKey !== null && !isTerminal(state))
      .map(({ resultKey }) => `idempotent work ${resultKey}`),
    ...deliveries.map(({ messageId }) => `delivery of message ${messageId}`),
    // A capability is written only where its uses are counted.
    ...capabilities.map(({ id }) => `limited capability ${id}`),
  ]);
}
