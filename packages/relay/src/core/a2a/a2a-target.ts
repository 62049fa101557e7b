import { type A2aOperation, RelayError } from "@a2a-relay/protocol";
import { RELAY_AGENT } from "../rules/agent-name.ts";

type Members = Readonly<Record<string, unknown>>;

/**
 * Whom a request is for: the agent whose address was called; at the relay's own address the one that the A2A tenant
 * field names, or the metadata of a message. Undefined: the relay itself.
 */
export function targetOf(
  operation: A2aOperation,
  params: Members,
  calledName: string | undefined,
): string | undefined {
  const names = [calledName, params["tenant"], ...(isMessage(operation) ? namesIn(params) : [])];
  return names.find((name): name is string => {
    return typeof name === "string" && name !== "" && name !== RELAY_AGENT;
  });
}

/** A message that names no agent and adds to no task is for the relay's own skills. */
export function isForRelay(params: Members): boolean {
  const taskId = memberOf(params["message"], "taskId");
  return taskId === undefined || taskId === null || taskId === "";
}

/** The number of the last step that a reader has seen. */
export function readEventId(lastEventId: string | undefined): number | undefined {
  if (lastEventId === undefined || lastEventId === "") return undefined;
  if (/^\d{1,9}$/.test(lastEventId)) return Number(lastEventId);
  throw new RelayError(
    "invalid_argument",
    `Last-Event-ID: "${lastEventId}" is no id of an event of this stream`,
  );
}

function isMessage(operation: A2aOperation): boolean {
  return operation === "send" || operation === "stream";
}

function namesIn(params: Members): readonly unknown[] {
  return [params["metadata"], memberOf(params["message"], "metadata")].map((metadata) =>
    memberOf(metadata, "relay_target_agent_id"),
  );
}

function memberOf(value: unknown, member: string): unknown {
  return typeof value === "object" && value !== null ? (value as Members)[member] : undefined;
}
