/*
 * Calling an A2A agent, without I/O: choose an interface of its card, write the request, read the answer. The SDK and
 * the relay both call this way.
 */

export * from "./agent-answer.ts";
export * from "./agent-interface.ts";
export * from "./agent-request.ts";
