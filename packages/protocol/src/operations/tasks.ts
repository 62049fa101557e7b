import {
  type TaskArtifactRequest,
  TaskArtifactRequestSchema,
  TaskCancelRequestSchema,
  TaskCompleteRequestSchema,
  TaskFailRequestSchema,
  type TaskStatusRequest,
  TaskStatusRequestSchema,
} from "../model/task.ts";
import { TaskResponseSchema, TasksResponseSchema, TaskTreeResponseSchema } from "../wire/answers.ts";
import { TasksQuerySchema } from "../wire/requests.ts";
import { TaskEventsQuerySchema, TaskEventsResponseSchema, TaskEventViewSchema } from "../wire/stream.ts";
import { EXAMPLE_IDS } from "./example-ids.ts";
import type { OperationEntries, Repeat } from "./operation.ts";
import { AGENT_ERRORS, WORK_ERRORS } from "./shared.ts";

const tag = "Tasks";
const params = { id: EXAMPLE_IDS.task };
const lease_id = EXAMPLE_IDS.lease;

const reading = {
  method: "GET",
  tag,
  verbs: ["tasks.read"],
  errors: ["not_found"],
  repeat: "always",
} as const;
const working = {
  method: "POST",
  tag,
  verbs: ["tasks.read", "tasks.work"],
  answers: { 200: { description: "The task", schema: TaskResponseSchema } },
  errors: WORK_ERRORS,
  repeat: "always",
} as const;

export const tasks = {
  reportStatus: {
    ...working,
    path: "/tasks/{id}/status",
    summary: "Report progress, or ask for input",
    body: TaskStatusRequestSchema,
    // A repeated progress report is harmless, a repeated question is not.
    repeat: ({ state }: TaskStatusRequest): Repeat => (state === "working" ? "always" : "if_not_done"),
    example: { params, body: { state: "working", text: "half of it is done", lease_id } },
  },
  addArtifact: {
    ...working,
    path: "/tasks/{id}/artifacts",
    summary: "Add an artifact, whole or in pieces",
    body: TaskArtifactRequestSchema,
    // Replacing twice is harmless, appending twice is not.
    repeat: ({ append }: TaskArtifactRequest): Repeat => (append === true ? "if_not_done" : "with_key"),
    example: {
      params,
      body: { artifact: { artifactId: "report", parts: [{ text: "报告" }] }, lease_id },
    },
  },
  complete: {
    ...working,
    path: "/tasks/{id}/complete",
    summary: "Finish: task, message and result in one step; a second, different completion is refused",
    body: TaskCompleteRequestSchema,
    // Named artifacts make the same completion recognisable.
    repeat: "with_key",
    example: { params, body: { text: "PR 12 is fine", lease_id } },
  },
  fail: {
    ...working,
    path: "/tasks/{id}/fail",
    summary: "Give up with a reason",
    body: TaskFailRequestSchema,
    example: { params, body: { reason: "there is no PR 12", lease_id } },
  },
  reject: {
    ...working,
    path: "/tasks/{id}/reject",
    summary: "Decline with a reason",
    body: TaskFailRequestSchema,
    example: { params, body: { reason: "I do not review", lease_id } },
  },
  cancel: {
    ...working,
    path: "/tasks/{id}/cancel",
    summary: "The requester no longer needs it",
    verbs: ["tasks.read", "tasks.cancel"],
    body: TaskCancelRequestSchema,
    example: { params, body: { reason: "PR 12 was closed" } },
  },
  get: {
    ...reading,
    path: "/tasks/{id}",
    summary: "One task with its artifacts",
    answers: { 200: { description: "The task", schema: TaskResponseSchema } },
    example: { params },
  },
  list: {
    ...reading,
    path: "/tasks",
    summary: "Tasks by id, oldest first",
    verbs: ["tasks.list"],
    query: TasksQuerySchema,
    answers: { 200: { description: "Tasks, and a cursor when there are more", schema: TasksResponseSchema } },
    errors: AGENT_ERRORS,
    paging: { items: "tasks", next: "cursor", query: "since" },
    example: { query: { agent: EXAMPLE_IDS.agent, limit: 10 } },
  },
  tree: {
    ...reading,
    path: "/tasks/{id}/tree",
    summary: "The task and all its subtasks",
    answers: { 200: { description: "The tree", schema: TaskTreeResponseSchema } },
    example: { params },
  },
  events: {
    ...reading,
    path: "/tasks/{id}/events",
    summary: "What happens to the task, to its end",
    query: TaskEventsQuerySchema,
    waits: true,
    streams: "on request",
    event: TaskEventViewSchema,
    answers: {
      200: { description: "Events, and the cursor behind them", schema: TaskEventsResponseSchema },
      204: {
        description:
          "As a stream: nothing comes after that cursor, because the task is finished or was handed on",
      },
    },
    paging: { items: "events", next: "cursor", query: "since" },
    example: { params },
  },
} as const satisfies OperationEntries;
