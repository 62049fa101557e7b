import { RelayError } from "../base/relay-error.ts";
import { quote } from "../base/text.ts";
import { A2A_OPERATIONS, type A2aOperation } from "./a2a-dialect.ts";
import type { JsonObject } from "./json-members.ts";

export type RestMethod = "GET" | "POST" | "DELETE";

interface RestRoute {
  /** Servers accept all of them, callers use the first. */
  readonly methods: readonly [RestMethod, ...RestMethod[]];
  /** Below the agent's address; 0.3 has `v1/` before it. */
  readonly path: string;
  /** The name in 0.3, where it is another. */
  readonly olderPath?: string;
}

const PUSHES = "tasks/{taskId}/pushNotificationConfigs";

/** The paths of A2A's HTTP+JSON binding. */
export const REST_ROUTES: Readonly<Record<A2aOperation, RestRoute>> = {
  send: { methods: ["POST"], path: "message:send" },
  stream: { methods: ["POST"], path: "message:stream" },
  get: { methods: ["GET"], path: "tasks/{id}" },
  list: { methods: ["GET"], path: "tasks" },
  cancel: { methods: ["POST"], path: "tasks/{id}:cancel" },
  // The text of the specification says POST, its protocol buffers say GET, and agents support one or both.
  subscribe: { methods: ["GET", "POST"], path: "tasks/{id}:subscribe" },
  "push-create": { methods: ["POST"], path: PUSHES },
  "push-get": { methods: ["GET"], path: `${PUSHES}/{id}` },
  "push-list": { methods: ["GET"], path: PUSHES },
  "push-delete": { methods: ["DELETE"], path: `${PUSHES}/{id}` },
  "extended-card": { methods: ["GET"], path: "extendedAgentCard", olderPath: "card" },
};

/** The path of a call. Throws `invalid_argument` for an id that no path can hold. */
export function restPathOf(
  operation: A2aOperation,
  params: JsonObject,
  { isOlder }: { readonly isOlder: boolean },
): string {
  const { path, olderPath } = REST_ROUTES[operation];
  const template = isOlder ? `v1/${olderPath ?? path}` : path;
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeRestId(params[name]));
}

/** The URL parser resolves dots even when they are encoded, so they would call another route. */
export function encodeRestId(id: unknown): string {
  if (typeof id === "string" && id.isWellFormed() && !["", ".", ".."].includes(id))
    return encodeURIComponent(id);
  throw new RelayError("invalid_argument", `${quote(id)} is not a usable id`);
}

/** The operation of a decoded path without `v1/`, and the parameters in it. */
export function readRestPath(method: RestMethod, path: string): RestPath | undefined {
  for (const { operation, methods, pattern } of PATTERNS) {
    const match = methods.includes(method) ? pattern.exec(path) : null;
    if (match !== null) return { operation, params: { ...match.groups } };
  }
  return undefined;
}

export interface RestPath {
  readonly operation: A2aOperation;
  readonly params: Readonly<Record<string, string>>;
}

const PATTERNS = A2A_OPERATIONS.flatMap((operation) => {
  const { methods, path, olderPath } = REST_ROUTES[operation];
  // Behind the colon of a task's path is a verb: an unknown one is not part of the id.
  const id = operation === "get" ? "[^/:]+" : "[^/]+";
  return [path, olderPath]
    .filter((template) => template !== undefined)
    .map((template) => template.replaceAll(/\{(\w+)\}/g, `(?<$1>${id})`))
    .map((source) => ({ operation, methods, pattern: new RegExp(`^${source}$`) }));
});
