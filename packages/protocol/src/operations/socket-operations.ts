import type { SocketVerb } from "../wire/stream.ts";
import type { Operation } from "./operation.ts";
import { operations } from "./operations.ts";

/** The operation of each request of a socket: `input` is its body, and the answer is its answer. */
export const socketOperations = {
  send: operations.messages.send,
  send_batch: operations.messages.sendBatch,
  lease: operations.mailboxes.lease,
  renew: operations.mailboxes.renew,
  release: operations.mailboxes.release,
  ack: operations.mailboxes.acknowledge,
  fail: operations.mailboxes.fail,
} satisfies Record<SocketVerb, Operation>;
export type SocketOperations = typeof socketOperations;
