import type { RelayCore } from "../core/relay-core.ts";
import { a2aRoutes } from "../transports/a2a/a2a-routes.ts";
import { cardRoutes, type CardRouteSettings } from "../transports/a2a/card-routes.ts";
import { agentRoutes, pushRoutes } from "../transports/http/agent-routes.ts";
import { capabilityRoutes } from "../transports/http/capability-routes.ts";
import type { HttpMetrics } from "../transports/http/http-metrics.ts";
import { keyRoutes, tenantRoutes } from "../transports/http/key-routes.ts";
import { mailboxRoutes } from "../transports/http/mailbox-routes.ts";
import { inboxRoutes, messageRoutes } from "../transports/http/message-routes.ts";
import { operatorRoutes } from "../transports/http/operator-routes.ts";
import type { Route } from "../transports/http/route.ts";
import { serviceRoutes } from "../transports/http/service-routes.ts";
import { taskRoutes } from "../transports/http/task-routes.ts";
import { socketRoutes, streamRoutes } from "../transports/streams/stream-routes.ts";
import { taskQueueRoutes } from "../transports/task-queue/task-queue-routes.ts";

export interface RouteSettings extends CardRouteSettings {
  readonly version: string;
  /** The relay's address for others; available once it listens. */
  readonly publicUrl: () => string;
  readonly heartbeatMs: number;
}

/** All HTTP routes of the relay, as data. */
export function relayRoutes(
  core: RelayCore,
  metrics: HttpMetrics,
  settings: RouteSettings,
): readonly Route[] {
  const others = [
    ...agentRoutes(core.agents),
    ...pushRoutes(core.pushes),
    ...messageRoutes(core.messages),
    ...inboxRoutes(core.inbox),
    ...mailboxRoutes(core.mailboxes),
    ...streamRoutes(core),
    ...socketRoutes(core, settings),
    ...taskRoutes(core.tasks),
    ...operatorRoutes(core.journal, core.repairs),
    ...keyRoutes(core.keys),
    ...capabilityRoutes(core.capabilities),
    ...tenantRoutes(core.tenants),
    ...taskQueueRoutes(core.taskQueue),
    ...a2aRoutes(core),
    ...cardRoutes(core.a2aCards, settings),
  ];
  return [...others, ...serviceRoutes({ ...core, metrics, about: settings, others })];
}
