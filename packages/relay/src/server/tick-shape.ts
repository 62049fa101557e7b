import { executionAsyncResource } from "node:async_hooks";

/**
 * Node keeps every `process.nextTick` in an object, and V8 forgets the shape of such objects when it collects garbage
 * while there is none, as may well happen while a program loads. From then on every tick is built the slow way, which
 * costs a request several microseconds for as long as the process lives. One tick that is kept keeps the shape.
 */
const kept: object[] = [];

export function keepTickShape(): void {
  process.nextTick(() => kept.push(executionAsyncResource()));
}
