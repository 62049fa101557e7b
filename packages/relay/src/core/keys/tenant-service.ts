import {
  assertCleanJson,
  formatInstant,
  LIMITS,
  quote,
  RelayError,
  TenantChangeRequestSchema,
  type TenantsResponse,
  type TenantView,
} from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import { type EventDraft, NO_SUBJECT } from "../ports/journal.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { TenantSettings } from "../access/capability-gate.ts";
import type { Guard } from "../access/guard.ts";
import type { TenantRecord } from "../ports/access.ts";
import { actorName, DEFAULT_TENANT, type Principal } from "../access/principal.ts";

const TENANT_NAME = /^[\p{L}\p{M}\p{N}_.-]+$/u;
const parseChange = parserOf(TenantChangeRequestSchema, "tenant");

/** The organisations of this relay. The first key of a tenant creates it. */
export class TenantService {
  readonly #store: RelayStore;
  readonly #guard: Guard;
  readonly #clock: Clock;
  readonly #settings: TenantSettings;

  constructor(
    parts: { readonly store: RelayStore; readonly guard: Guard; readonly clock: Clock },
    settings: TenantSettings,
  ) {
    this.#store = parts.store;
    this.#guard = parts.guard;
    this.#clock = parts.clock;
    this.#settings = settings;
  }

  /** All tenants for the relay's operator, the caller's own for other operators. */
  async list(principal: Principal): Promise<TenantsResponse> {
    await this.#guard.authorize(principal, "tenants.read");
    const isRoot = principal.kind === "operator" && principal.isRoot;
    const seen = (await this.all()).filter(({ id }) => isRoot || id === principal.tenant);
    return { tenants: seen.map(viewTenant) };
  }

  async change(principal: Principal, name: string, input: unknown): Promise<TenantView> {
    const tenant = parseTenantName(name);
    await this.#guard.authorize(principal, "tenants.write", { tenant });
    const { capabilities } = parseChange(input);
    if (tenant === DEFAULT_TENANT) {
      throw new RelayError(
        "wrong_state",
        `${DEFAULT_TENANT} follows the relay's configuration; set A2A_RELAY_CAPABILITIES=${capabilities} and restart it`,
      );
    }
    return decideAndCommit(this.#store, async () => {
      const before = await this.#store.tenants.get(tenant);
      if (before === undefined) throw noTenant(tenant);
      const changed = { ...before, capabilities: capabilities === "on" };
      const answer = viewTenant(changed);
      if (changed.capabilities === before.capabilities) return { changes: undefined, answer };
      const event = tenantEvent(changed, { actor: actorName(principal), atMs: this.#clock.nowMs() });
      return { changes: { tenant, tenants: [changed], events: [event] }, answer };
    });
  }

  /**
   * The caller with that tenant. Only the relay's operator may enter another tenant; other callers get the same
   * refusal whether it exists or not.
   */
  async enter(principal: Principal, name: string): Promise<Principal> {
    const tenant = name.normalize("NFC");
    assertCleanJson(tenant, "tenant");
    if (principal.tenant === tenant) return principal;
    if (principal.kind === "operator" && principal.isRoot) {
      if ((await this.#store.tenants.get(tenant)) === undefined) throw noTenant(tenant);
      return { ...principal, tenant };
    }
    await this.#guard.record(principal.tenant, {
      type: "access.denied",
      atMs: this.#clock.nowMs(),
      actor: actorName(principal),
      agentId: null,
      messageId: null,
      taskId: null,
      threadId: null,
      data: {
        ...(principal.keyId === undefined ? {} : { key_id: principal.keyId }),
        // The name comes from a path and may have any length.
        tenant: Array.from(tenant).slice(0, LIMITS.tenantCharsMax).join(""),
      },
    });
    throw new RelayError("permission_denied", "this key acts in its own tenant only");
  }

  /** For the relay's own work, without a check. The default tenant's switch comes from the configuration. */
  async all(): Promise<readonly TenantRecord[]> {
    const { capabilities } = this.#settings;
    const tenants = await this.#store.tenants.list();
    return tenants.map((tenant) => (tenant.id === DEFAULT_TENANT ? { ...tenant, capabilities } : tenant));
  }
}

function noTenant(tenant: string): RelayError {
  return new RelayError("not_found", `there is no tenant ${quote(tenant)}; its first key creates it`);
}

/** Normalises the name to NFC and refuses what could climb out of a path. */
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
    `${field}: ${quote(input)} is not a tenant's name; characters of any script, digits and _ . - are, ".." is not`,
  );
}

function viewTenant({ id, capabilities, createdAtMs }: TenantRecord): TenantView {
  return {
    tenant: id,
    capabilities: onOrOff(capabilities),
    // The default tenant was never created.
    ...(createdAtMs === 0 ? {} : { created_at: formatInstant(createdAtMs) }),
  };
}

/** Goes into the tenant's own journal. */
export function tenantEvent(
  tenant: TenantRecord,
  by: { readonly actor: string; readonly atMs: number },
): EventDraft {
  const data = {
    tenant: tenant.id,
    created: tenant.version === 0,
    capabilities: onOrOff(tenant.capabilities),
  };
  return { type: "tenant.changed", ...by, ...NO_SUBJECT, data };
}

function onOrOff(isOn: boolean): "on" | "off" {
  return isOn ? "on" : "off";
}
