import {
  LIMITS,
  quote,
  RelayError,
  TenantChangeRequestSchema,
  type TenantsResponse,
  type TenantView,
} from "@a2a-relay/protocol";
import type { Clock } from "../ports/clock.ts";
import { decideAndCommit } from "../mechanisms/commit-retry.ts";
import type { RelayStore } from "../ports/relay-store.ts";
import { parserOf } from "../mechanisms/schema-check.ts";
import type { TenantSettings } from "../access/capabilities.ts";
import type { Guard } from "../access/guard.ts";
import type { TenantRecord } from "../ports/access.ts";
import { actorName, DEFAULT_TENANT, type Principal } from "../access/principal.ts";
import { parseTenantName } from "./tenant-name.ts";
import { tenantEvent, viewTenant } from "./tenant-view.ts";

const parseChange = parserOf(TenantChangeRequestSchema, "tenant");

/** The organisations of this relay. They come into being with their first key. */
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

  /** All of them for whoever runs the relay, their own for others. */
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
      const known = await this.#store.tenant(tenant);
      if (known === undefined) throw noTenant(tenant);
      const changed = { ...known, capabilities: capabilities === "on" };
      const answer = viewTenant(changed);
      if (changed.capabilities === known.capabilities) return { changes: undefined, answer };
      const event = tenantEvent(changed, { actor: actorName(principal), atMs: this.#clock.nowMs() });
      return { changes: { tenant, tenants: [changed], events: [event] }, answer };
    });
  }

  /**
   * The caller as it acts in that tenant. Only whoever runs the relay may change tenants; all others hear the
   * same whether it exists or not.
   */
  async enter(principal: Principal, name: string): Promise<Principal> {
    const tenant = name.normalize("NFC");
    if (principal.tenant === tenant) return principal;
    if (principal.kind === "operator" && principal.isRoot) {
      if ((await this.#store.tenant(tenant)) === undefined) throw noTenant(tenant);
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
        // It came off a path and may be anything.
        tenant: Array.from(tenant).slice(0, LIMITS.tenantCharsMax).join(""),
      },
    });
    throw new RelayError("permission_denied", "this key acts in its own tenant only");
  }

  /** For the relay itself; with the default tenant's switch as it is configured. */
  async all(): Promise<readonly TenantRecord[]> {
    const { capabilities } = this.#settings;
    const tenants = await this.#store.tenants();
    return tenants.map((tenant) => (tenant.id === DEFAULT_TENANT ? { ...tenant, capabilities } : tenant));
  }
}

function noTenant(tenant: string): RelayError {
  return new RelayError(
    "not_found",
    `there is no tenant ${quote(tenant)}; it comes into being with its first key`,
  );
}
