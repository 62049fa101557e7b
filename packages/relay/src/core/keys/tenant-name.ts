import { LIMITS, quote, RelayError } from "@a2a-relay/protocol";

const TENANT_NAME = /^[\p{L}\p{M}\p{N}_.-]+$/u;

/** The only maker of a tenant's name from outside: in one spelling, and nothing that could climb out of a path. */
export function parseTenantName(input: string, field = "tenant"): string {
  const name = input.normalize("NFC");
  if (Array.from(name).length > LIMITS.tenantCharsMax) {
    throw new RelayError(
      "too_large",
      `${field}: at most ${LIMITS.tenantCharsMax} characters, got ${input.length}`,
    );
  }
  if (TENANT_NAME.test(name) && name !== "." && !name.includes("..")) return name;
  throw new RelayError(
    "invalid_argument",
    `${field}: ${quote(input)} is not a tenant's name; messages of any script, digits and _ . - are, ".." is not`,
  );
}
