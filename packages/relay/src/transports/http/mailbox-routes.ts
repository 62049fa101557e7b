import { operations } from "@a2a-relay/protocol";
import type { MailboxService } from "../../core/mailboxes/mailbox-service.ts";
import { route, type Route } from "./route.ts";

/** Mailboxes over HTTP. */
export function mailboxRoutes(mailboxes: MailboxService): readonly Route[] {
  return [
    route(operations.mailboxes.read, async (call) => ({
      body: await mailboxes.read(call.principal, call.params.agent_id, call.query, call),
    })),
    route(operations.mailboxes.acknowledge, async ({ principal, params, body }) => ({
      body: await mailboxes.ack(principal, params.agent_id, body),
    })),
    route(operations.mailboxes.lease, async (call) => ({
      body: await mailboxes.lease(call.principal, call.params.agent_id, call.body ?? {}, call),
    })),
    route(operations.mailboxes.renew, async ({ principal, params, body }) => ({
      body: await mailboxes.renew(principal, params.agent_id, body),
    })),
    route(operations.mailboxes.release, async ({ principal, params, body }) => ({
      body: await mailboxes.release(principal, params.agent_id, body),
    })),
    route(operations.mailboxes.fail, async ({ principal, params, body }) => ({
      body: await mailboxes.fail(principal, params.agent_id, body),
    })),
  ];
}
