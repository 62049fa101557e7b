import { operations } from "@a2a-relay/protocol";
import type { TaskService } from "../../core/tasks/task-service.ts";
import { route, type Route } from "./route.ts";

/** Working on tasks over HTTP. */
export function taskRoutes(tasks: TaskService): readonly Route[] {
  return [
    route(operations.tasks.reportStatus, async ({ principal, params, body }) => ({
      body: { task: await tasks.reportStatus(principal, params.id, body) },
    })),
    route(operations.tasks.addArtifact, async ({ principal, params, body }) => ({
      body: { task: await tasks.addArtifact(principal, params.id, body) },
    })),
    route(operations.tasks.complete, async ({ principal, params, body }) => ({
      body: { task: await tasks.complete(principal, params.id, body) },
    })),
    route(operations.tasks.fail, async ({ principal, params, body }) => ({
      body: { task: await tasks.fail(principal, params.id, body) },
    })),
    route(operations.tasks.reject, async ({ principal, params, body }) => ({
      body: { task: await tasks.reject(principal, params.id, body) },
    })),
    route(operations.tasks.cancel, async ({ principal, params, body }) => ({
      body: { task: await tasks.cancel(principal, params.id, body) },
    })),
    route(operations.tasks.get, async ({ principal, params }) => ({
      body: { task: await tasks.get(principal, params.id) },
    })),
    route(operations.tasks.list, async ({ principal, query }) => ({
      body: await tasks.list(principal, query),
    })),
    route(operations.tasks.tree, async ({ principal, params }) => ({
      body: { tree: await tasks.tree(principal, params.id) },
    })),
  ];
}
