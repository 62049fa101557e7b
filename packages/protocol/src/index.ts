/*
 * What both ends of a wire agree on. Each folder may import those below it, but operations/ and a2a/ do not import
 * each other, nor do a2a/ and wire/:
 *
 * operations/   every route of the relay: its path, schemas, errors and permission; start at operations.ts
 * a2a/          A2A 1.0 as JSON, and the dialects that older agents and clients use; a2a/caller/ calls agents
 * wire/         requests and answers of the HTTP API, of streams and sockets, and of the task queue
 * model/        agents, messages, deliveries, tasks, pushes
 * base/         limits, errors, text and shared schemas
 */

export * from "./a2a/caller/index.ts";
export * from "./a2a/index.ts";
export * from "./base/base58.ts";
export * from "./base/limits.ts";
export * from "./base/member-names.ts";
export * from "./base/relay-error.ts";
export * from "./base/text.ts";
export * from "./model/address.ts";
export * from "./model/agent.ts";
export * from "./model/delivery.ts";
export * from "./model/message.ts";
export * from "./model/part.ts";
export * from "./model/push.ts";
export * from "./model/task.ts";
export * from "./operations/a2a-endpoints.ts";
export * from "./operations/example-ids.ts";
export * from "./operations/operation.ts";
export * from "./operations/operations.ts";
export * from "./operations/socket-operations.ts";
export * from "./wire/access.ts";
export * from "./wire/answers.ts";
export * from "./wire/repair.ts";
export * from "./wire/requests.ts";
export * from "./wire/stream.ts";
export * from "./wire/task-queue-answers.ts";
export * from "./wire/task-queue.ts";
