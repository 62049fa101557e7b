import type { TaskState } from "../model/task.ts";
import type { A2aState } from "./a2a-json.ts";

const A2A_STATE = {
  submitted: "TASK_STATE_SUBMITTED",
  working: "TASK_STATE_WORKING",
  "input-required": "TASK_STATE_INPUT_REQUIRED",
  "auth-required": "TASK_STATE_AUTH_REQUIRED",
  completed: "TASK_STATE_COMPLETED",
  failed: "TASK_STATE_FAILED",
  canceled: "TASK_STATE_CANCELED",
  rejected: "TASK_STATE_REJECTED",
} as const satisfies Record<TaskState, A2aState>;

const TASK_STATE = {
  TASK_STATE_SUBMITTED: "submitted",
  TASK_STATE_WORKING: "working",
  TASK_STATE_INPUT_REQUIRED: "input-required",
  TASK_STATE_AUTH_REQUIRED: "auth-required",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_CANCELED: "canceled",
  TASK_STATE_REJECTED: "rejected",
} as const satisfies Record<A2aState, TaskState>;

/** The numbers of `lf.a2a.v1.TaskState`, which ProtoJSON allows instead of the names. */
const STATE_OF_NUMBER: readonly (TaskState | undefined)[] = [
  undefined,
  "submitted",
  "working",
  "completed",
  "failed",
  "canceled",
  "input-required",
  "rejected",
  "auth-required",
];

/** Without case, prefix and separators: `inputRequired` equals `TASK_STATE_INPUT_REQUIRED`. */
const STATE_OF_BARE_NAME: ReadonlyMap<string, TaskState> = new Map(
  Object.values(TASK_STATE).map((state) => [bareNameOf(state), state]),
);

export function toA2aState(state: TaskState): A2aState {
  return A2A_STATE[state];
}

export function toTaskState(state: A2aState): TaskState {
  return TASK_STATE[state];
}

/** A state in any dialect's spelling, `CANCELLED` with two L and numbers included. */
export function readTaskState(value: unknown): TaskState | undefined {
  if (typeof value === "number") return STATE_OF_NUMBER[value];
  if (typeof value !== "string") return undefined;
  if (Object.hasOwn(TASK_STATE, value)) return toTaskState(value as A2aState);
  return STATE_OF_BARE_NAME.get(bareNameOf(value).replace(/^cancelled$/, "canceled"));
}

/** As 1.0 writes it. A state that no dialect has stays unchanged. */
export function readA2aState(value: unknown): unknown {
  const state = readTaskState(value);
  if (state !== undefined) return A2A_STATE[state];
  return isUnspecified(value) ? "TASK_STATE_UNSPECIFIED" : value;
}

/** As 0.2 and 0.3 write it. */
export function writePlainState(value: unknown): unknown {
  return readTaskState(value) ?? (isUnspecified(value) ? "unknown" : value);
}

function isUnspecified(value: unknown): boolean {
  if (value === 0) return true;
  return typeof value === "string" && ["unknown", "unspecified"].includes(bareNameOf(value));
}

function bareNameOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/^task[-_]state[-_]/, "")
    .replaceAll(/[-_ ]/g, "");
}
