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

/** Releases of 0.3.0 were served under this name too. */
const OTHER_METHODS: ReadonlyMap<string, A2aOperation> = new Map([
  ["agent/authenticatedExtendedCard", "extended-card"],
]);

/**
 * Who asks, by the name of what is asked: names differ between the dialects, and clients forget the header. Where more
 * than one dialect has the name, the version that was said decides, or else the younger one.
 */
export function dialectOfMethod(
  method: string,
  said: { readonly version?: string | undefined } = {},
): { readonly dialect: A2aDialect; readonly operation: A2aOperation } | undefined {
  const version = parseA2aVersion(said.version);
  const dialects = A2A_VERSIONS.map((name) => A2A_DIALECTS[name]);
  const preferred = dialects.filter((dialect) => dialect.version === version);
  for (const dialect of [...preferred, ...dialects]) {
    const operation = A2A_OPERATIONS.find((name) => dialect.methods[name] === method);
    if (operation !== undefined) return { dialect, operation };
  }
  const other = OTHER_METHODS.get(method);
  return other === undefined ? undefined : { dialect: V03_DIALECT, operation: other };
}

/** The `A2A-Version` header. Its patch number has no meaning; an empty one says nothing. */
export function parseA2aVersion(header: string | undefined): A2aVersion | "unknown" | undefined {
  const said = header?.trim() ?? "";
  if (said === "") return undefined;
  const [, major, minor = "0"] = /^(\d+)(?:\.(\d+)(?:\.\d+)*)?$/.exec(said) ?? [];
  return A2A_VERSIONS.find((version) => version === `${major}.${minor}`) ?? "unknown";
}
