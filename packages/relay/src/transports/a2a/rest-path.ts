import {
  A2aError,
  type A2aDialect,
  type A2aOperation,
  V03_REST_DIALECT,
  V1_DIALECT,
} from "@a2a-relay/protocol";

export type RestMethod = "GET" | "POST" | "DELETE";

/** The operation that a path names, with its parameters. */
export interface RestRequest {
  readonly operation: A2aOperation;
  readonly dialect: A2aDialect;
  /** Parameters of the path, as the dialect names them. */
  readonly fixed: Readonly<Record<string, string>>;
}

interface RestPath {
  readonly methods: readonly RestMethod[];
  readonly pattern: RegExp;
  readonly operation: A2aOperation;
}

const PATHS: readonly RestPath[] = [
  { methods: ["POST"], pattern: /^message:send$/, operation: "send" },
  { methods: ["POST"], pattern: /^message:stream$/, operation: "stream" },
  { methods: ["GET"], pattern: /^tasks$/, operation: "list" },
  { methods: ["POST"], pattern: /^tasks\/(?<id>[^/]+):cancel$/, operation: "cancel" },
  // The specification says POST, its proto GET.
  { methods: ["GET", "POST"], pattern: /^tasks\/(?<id>[^/]+):subscribe$/, operation: "subscribe" },
  { methods: ["GET"], pattern: /^tasks\/(?<id>[^/:]+)$/, operation: "get" },
  {
    methods: ["POST"],
    pattern: /^tasks\/(?<taskId>[^/]+)\/pushNotificationConfigs$/,
    operation: "push-create",
  },
  { methods: ["GET"], pattern: /^tasks\/(?<taskId>[^/]+)\/pushNotificationConfigs$/, operation: "push-list" },
  {
    methods: ["GET"],
    pattern: /^tasks\/(?<taskId>[^/]+)\/pushNotificationConfigs\/(?<id>[^/]+)$/,
    operation: "push-get",
  },
  {
    methods: ["DELETE"],
    pattern: /^tasks\/(?<taskId>[^/]+)\/pushNotificationConfigs\/(?<id>[^/]+)$/,
    operation: "push-delete",
  },
  { methods: ["GET"], pattern: /^extendedAgentCard$/, operation: "extended-card" },
  { methods: ["GET"], pattern: /^card$/, operation: "extended-card" },
];

/** Reads the path below an agent's address; an A2A tenant may precede the operation. */
export function restRequestOf(method: RestMethod, fullPath: string): RestRequest {
  const path = fullPath.replace(/\/$/, "");
  const isOld = path.startsWith("v1/");
  const asked = isOld ? path.slice("v1/".length) : path;
  const [, tenant, rest] = /^([^/]+)\/(.+)$/.exec(asked) ?? [];
  const found = find(method, asked) ?? (rest === undefined ? undefined : find(method, rest));
  if (found === undefined) {
    throw new A2aError("MethodNotFound", `there is no ${method} ${path} in A2A's HTTP+JSON binding`);
  }
  const isBelowTenant = find(method, asked) === undefined && tenant !== undefined;
  const fixed = { ...found.fixed, ...(isBelowTenant ? { tenant } : {}) };
  return { operation: found.operation, dialect: isOld ? V03_REST_DIALECT : V1_DIALECT, fixed };
}

function find(method: RestMethod, path: string): Pick<RestRequest, "operation" | "fixed"> | undefined {
  for (const { methods, pattern, operation } of PATHS) {
    const match = methods.includes(method) ? pattern.exec(path) : null;
    if (match !== null) return { operation, fixed: { ...match.groups } };
  }
  return undefined;
}
