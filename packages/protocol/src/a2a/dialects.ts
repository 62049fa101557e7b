import {
  A2A_OPERATIONS,
  A2A_VERSIONS,
  type A2aDialect,
  type A2aOperation,
  type A2aVersion,
} from "./a2a-dialect.ts";
import { V01_DIALECT } from "./v01-dialect.ts";
import { V02_DIALECT, V03_DIALECT } from "./v03-dialect.ts";
import { V1_DIALECT } from "./v1-dialect.ts";

export const A2A_DIALECTS: Readonly<Record<A2aVersion, A2aDialect>> = {
  "1.0": V1_DIALECT,
  "0.3": V03_DIALECT,
  "0.2": V02_DIALECT,
  "0.1": V01_DIALECT,
};

/**
 * The dialect of a call by its method: names differ between the dialects, and clients forget the version header. Where
 * several dialects have the name, the given version decides, or else the newest.
 */
export function dialectOfMethod(
  method: string,
  said: { readonly version?: string | undefined } = {},
): MeantByMethod | undefined {
  const meant = METHODS.get(method);
  if (meant === undefined) return undefined;
  const version = parseA2aVersion(said.version);
  return meant.find(({ dialect }) => dialect.version === version) ?? meant[0];
}

interface MeantByMethod {
  readonly dialect: A2aDialect;
  readonly operation: A2aOperation;
}

/** The meanings of each method, newest dialect first. */
const METHODS: ReadonlyMap<string, readonly MeantByMethod[]> = methodsOf([
  ...A2A_VERSIONS.flatMap((version) =>
    A2A_OPERATIONS.map((operation) => ({ dialect: A2A_DIALECTS[version], operation })),
  ).map((meant) => [meant.dialect.methods[meant.operation], meant] as const),
  // Some releases of 0.3.0 use this name.
  ["agent/authenticatedExtendedCard", { dialect: V03_DIALECT, operation: "extended-card" }],
]);

function methodsOf(
  named: readonly (readonly [method: string | undefined, meant: MeantByMethod])[],
): ReadonlyMap<string, readonly MeantByMethod[]> {
  const methods = new Map<string, readonly MeantByMethod[]>();
  for (const [method, meant] of named) {
    if (method !== undefined) methods.set(method, [...(methods.get(method) ?? []), meant]);
  }
  return methods;
}

/** Reads the `A2A-Version` header. The patch number has no meaning; undefined when empty. */
export function parseA2aVersion(header: string | undefined): A2aVersion | "unknown" | undefined {
  const said = header?.trim() ?? "";
  if (said === "") return undefined;
  const [, major, minor = "0"] = /^(\d+)(?:\.(\d+)(?:\.\d+)*)?$/.exec(said) ?? [];
  return A2A_VERSIONS.find((version) => version === `${major}.${minor}`) ?? "unknown";
}
