/** One request as it goes onto the wire. */
export interface SpokenRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** How a client of one dialect and binding says what all of them can say. */
export interface SpokenDialect {
  readonly name: string;
  /** Answered at once. Holds text, a file, data that is null, an extension, and unknown members. */
  send(): SpokenRequest;
  /** Adds to a task. */
  add(taskId: string, text: string): SpokenRequest;
  stream(): SpokenRequest;
  subscribe(taskId: string): SpokenRequest;
  get(taskId: string, historyLength?: number): SpokenRequest;
  cancel(taskId: string): SpokenRequest;
  list?(contextId: string): SpokenRequest;
}

export const AGENT = "zhiwei";
const PATH = `/agents/${AGENT}/a2a`;
const EXTENSION = "https://extensions.example/tone/v1";

function rpc(method: string, params: object, headers?: Readonly<Record<string, string>>): SpokenRequest {
  const body = { jsonrpc: "2.0", id: "请求-1", method, params };
  return { method: "POST", path: PATH, body, ...(headers === undefined ? {} : { headers }) };
}

const V1_PARTS = [
  { text: "你好" },
  { raw: "5L2g5aW9", filename: "你好.txt", mediaType: "text/plain" },
  { data: null },
  { data: { n: 1, 深: [null] }, metadata: { from: "测试" } },
];
const EXTRAS = {
  extensions: [EXTENSION],
  metadata: { [EXTENSION]: { tone: "dry" } },
  "x-unknown": { kept: true },
};

function v1Message(text: string, more: object = {}): object {
  return { messageId: "m-1", role: "ROLE_USER", parts: [{ text }], ...more };
}

const V1: Record<"send" | "stream", object> = {
  send: {
    message: { messageId: "m-1", role: "ROLE_USER", contextId: "c-1", parts: V1_PARTS, ...EXTRAS },
    configuration: { returnImmediately: true },
  },
  stream: { message: v1Message("慢慢来") },
};

const KIND_PARTS = [
  { kind: "text", text: "你好" },
  { kind: "file", file: { bytes: "5L2g5aW9", name: "你好.txt", mimeType: "text/plain" } },
  { kind: "data", data: { value: null }, metadata: { data_part_compat: true } },
  { kind: "data", data: { n: 1, 深: [null] }, metadata: { from: "测试" } },
];

function kindMessage(parts: readonly object[], more: object = {}): object {
  return { kind: "message", messageId: "m-1", role: "user", parts, ...more };
}

function olderRpc(name: string, headers?: Readonly<Record<string, string>>): SpokenDialect {
  const said = (text: string): object[] => [{ kind: "text", text }];
  return {
    name,
    send: () =>
      rpc(
        "message/send",
        {
          message: kindMessage(KIND_PARTS, { contextId: "c-1", ...EXTRAS }),
          configuration: { blocking: false },
        },
        headers,
      ),
    add: (taskId, text) => rpc("message/send", { message: kindMessage(said(text), { taskId }) }, headers),
    stream: () => rpc("message/stream", { message: kindMessage(said("慢慢来")) }, headers),
    subscribe: (id) => rpc("tasks/resubscribe", { id }, headers),
    get: (id, historyLength) => rpc("tasks/get", { id, historyLength }, headers),
    cancel: (id) => rpc("tasks/cancel", { id }, headers),
  };
}

const TYPE_PARTS = [
  { type: "text", text: "你好" },
  { type: "file", file: { bytes: "5L2g5aW9", name: "你好.txt", mimeType: "text/plain" } },
  { type: "data", data: { n: 1, 深: [null] }, metadata: { from: "测试" } },
];

/** Its callers name their tasks themselves. */
const V01: SpokenDialect = {
  name: "0.1",
  send: () =>
    rpc("tasks/send", {
      id: "my-task-1",
      sessionId: "c-1",
      message: { role: "user", parts: TYPE_PARTS, metadata: EXTRAS.metadata, "x-unknown": { kept: true } },
    }),
  add: (id, text) => rpc("tasks/send", { id, message: { role: "user", parts: [{ type: "text", text }] } }),
  stream: () =>
    rpc("tasks/sendSubscribe", {
      id: "my-task-2",
      message: { role: "user", parts: [{ type: "text", text: "慢慢来" }] },
    }),
  subscribe: (id) => rpc("tasks/resubscribe", { id }),
  get: (id, historyLength) => rpc("tasks/get", { id, historyLength }),
  cancel: (id) => rpc("tasks/cancel", { id }),
};

const V1_RPC: SpokenDialect = {
  name: "1.0",
  send: () => rpc("SendMessage", V1.send),
  add: (taskId, text) => rpc("SendMessage", { message: v1Message(text, { taskId }) }),
  stream: () => rpc("SendStreamingMessage", V1.stream),
  subscribe: (id) => rpc("SubscribeToTask", { id }),
  get: (id, historyLength) => rpc("GetTask", { id, historyLength }),
  cancel: (id) => rpc("CancelTask", { id }),
  list: (contextId) => rpc("ListTasks", { contextId, includeArtifacts: true }),
};

const V1_REST: SpokenDialect = {
  name: "1.0-rest",
  send: () => ({ method: "POST", path: `${PATH}/message:send`, body: V1.send }),
  add: (taskId, text) => ({
    method: "POST",
    path: `${PATH}/message:send`,
    body: { message: v1Message(text, { taskId }) },
  }),
  stream: () => ({ method: "POST", path: `${PATH}/message:stream`, body: V1.stream }),
  subscribe: (id) => ({ method: "POST", path: `${PATH}/tasks/${id}:subscribe` }),
  get: (id, length) => ({ method: "GET", path: `${PATH}/tasks/${id}${historyQuery(length)}` }),
  cancel: (id) => ({ method: "POST", path: `${PATH}/tasks/${id}:cancel`, body: {} }),
  list: (contextId) => ({
    method: "GET",
    path: `${PATH}/tasks?contextId=${contextId}&includeArtifacts=true`,
  }),
};

const PROTO_PARTS = [
  { text: "你好" },
  { file: { fileWithBytes: "5L2g5aW9", name: "你好.txt", mimeType: "text/plain" } },
  { data: { data: { n: 1, 深: [null] } }, metadata: { from: "测试" } },
];

function protoMessage(content: readonly object[], more: object = {}): object {
  return { messageId: "m-1", role: "ROLE_USER", content, ...more };
}

const V03_REST: SpokenDialect = {
  name: "0.3-rest",
  send: () => ({
    method: "POST",
    path: `${PATH}/v1/message:send`,
    body: {
      request: protoMessage(PROTO_PARTS, { contextId: "c-1", ...EXTRAS }),
      configuration: { blocking: false },
    },
  }),
  add: (taskId, text) => ({
    method: "POST",
    path: `${PATH}/v1/message:send`,
    body: { request: protoMessage([{ text }], { taskId }) },
  }),
  stream: () => ({
    method: "POST",
    path: `${PATH}/v1/message:stream`,
    body: { request: protoMessage([{ text: "慢慢来" }]) },
  }),
  subscribe: (id) => ({ method: "GET", path: `${PATH}/v1/tasks/${id}:subscribe` }),
  get: (id, length) => ({ method: "GET", path: `${PATH}/v1/tasks/${id}${historyQuery(length)}` }),
  cancel: (id) => ({ method: "POST", path: `${PATH}/v1/tasks/${id}:cancel` }),
  list: (contextId) => ({
    method: "GET",
    path: `${PATH}/v1/tasks?contextId=${contextId}&includeArtifacts=true`,
  }),
};

function historyQuery(length: number | undefined): string {
  return length === undefined ? "" : `?historyLength=${length}`;
}

export const SPOKEN_DIALECTS: readonly SpokenDialect[] = [
  V1_RPC,
  olderRpc("0.3"),
  olderRpc("0.2", { "a2a-version": "0.2" }),
  V01,
  V1_REST,
  V03_REST,
];
