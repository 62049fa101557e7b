import { operations } from "@a2a-relay/protocol";
import type { JournalService } from "../../core/journal/journal-service.ts";
import type { RepairService } from "../../core/mailboxes/repair-service.ts";
import { journalStream } from "./event-stream.ts";
import { resumed, route, type Route } from "./route.ts";

/** What operators read, and the repairs that only they may order. */
export function operatorRoutes(journal: JournalService, repairs: RepairService): readonly Route[] {
  return [
    route(operations.threads.list, async ({ principal, query }) => ({
      body: await journal.threads(principal, query),
    })),
    route(operations.threads.get, async ({ principal, params }) => ({
      body: await journal.thread(principal, params.id),
    })),
    route(operations.journal.events, async (call) =>
      call.wantsEvents
        ? { events: journalStream("events", await journal.follow(call.principal, resumed(call), call)) }
        : { body: await journal.events(call.principal, call.query, call) },
    ),
    route(operations.repairs.queue, async ({ principal, query }) => ({
      body: await repairs.queue(principal, query),
    })),
    route(operations.repairs.repair, async ({ principal, body }) => ({
      body: await repairs.repair(principal, body),
    })),
    route(operations.repairs.retryStale, async ({ principal, body }) => ({
      body: await repairs.retryStale(principal, body),
    })),
    route(operations.journal.verify, async ({ principal }) => ({ body: await journal.verify(principal) })),
  ];
}
