import { formatInstant, type TenantView } from "@a2a-relay/protocol";
import { type EventDraft, NO_SUBJECT } from "../ports/journal.ts";
import type { TenantRecord } from "../ports/access.ts";

export function viewTenant({ id, capabilities, createdAtMs }: TenantRecord): TenantView {
  return {
    tenant: id,
    capabilities: onOrOff(capabilities),
    // The default tenant was never made: it was always there.
    ...(createdAtMs === 0 ? {} : { created_at: formatInstant(createdAtMs) }),
  };
}

/** In the journal of the tenant itself. */
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
