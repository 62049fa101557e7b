import {
  TaskArtifactRequestSchema,
  TaskCancelRequestSchema,
  TaskCompleteRequestSchema,
  TaskFailRequestSchema,
  TasksQuerySchema,
  TaskStatusRequestSchema,
  type TaskView,
} from "@a2a-relay/protocol";
import type { TSchema } from "typebox";
import type { Principal } from "../../core/access/principal.ts";
import type { TaskService } from "../../core/tasks/task-service.ts";
import { param, type Route } from "./route.ts";

const tag = "Tasks";

type TaskVerb = (principal: Principal, id: string, input: unknown) => Promise<TaskView>;

/** Working on tasks over HTTP. */
export function taskRoutes(tasks: TaskService): readonly Route[] {
  const verb = (name: string, summary: string, body: TSchema, act: TaskVerb): Route => ({
    method: "POST",
    path: `/tasks/{id}/${name}`,
    tag,
    summary,
    body,
    answers: { 200: "The task" },
    handle: async (call) => ({ body: { task: await act(call.principal, param(call, "id"), call.body) } }),
  });
  return [
    verb("status", "Report progress, or ask for input", TaskStatusRequestSchema, (...args) =>
      tasks.reportStatus(...args),
    ),
    verb("artifacts", "Add an artifact, whole or in pieces", TaskArtifactRequestSchema, (...args) =>
      tasks.addArtifact(...args),
    ),
    verb(
      "complete",
      "Finish: task, message and result in one step; a second, different completion is refused",
      TaskCompleteRequestSchema,
      (...args) => tasks.complete(...args),
    ),
    verb("fail", "Give up with a reason", TaskFailRequestSchema, (...args) => tasks.fail(...args)),
    verb("reject", "Decline with a reason", TaskFailRequestSchema, (...args) => tasks.reject(...args)),
    verb("cancel", "The requester no longer needs it", TaskCancelRequestSchema, (...args) =>
      tasks.cancel(...args),
    ),
    {
      method: "GET",
      path: "/tasks/{id}",
      tag,
      summary: "One task with its artifacts",
      answers: { 200: "The task" },
      handle: async (call) => ({ body: { task: await tasks.get(call.principal, param(call, "id")) } }),
    },
    {
      method: "GET",
      path: "/tasks",
      tag,
      summary: "Tasks by id, oldest first",
      query: TasksQuerySchema,
      answers: { 200: "Tasks, and a cursor when there are more" },
      handle: async ({ principal, query }) => ({ body: await tasks.list(principal, query) }),
    },
    {
      method: "GET",
      path: "/tasks/{id}/tree",
      tag,
      summary: "The task and all its subtasks",
      answers: { 200: "The tree" },
      handle: async (call) => ({ body: { tree: await tasks.tree(call.principal, param(call, "id")) } }),
    },
  ];
}
