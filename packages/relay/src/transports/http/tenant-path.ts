const TENANT_PATH = /^\/t\/([^/?#]+)(?=[/?#]|$)/;

/** The path as if it had been asked for in the caller's own tenant. */
export function withoutTenant(url: string): string {
  if (!url.startsWith("/t/") || tenantOfPath(url) === undefined) return url;
  const rest = url.replace(TENANT_PATH, "");
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** The tenant that a path names; undefined when it names none, or in no way that can be read. */
export function tenantOfPath(url: string): string | undefined {
  const name = TENANT_PATH.exec(url)?.[1];
  if (name === undefined) return undefined;
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}
