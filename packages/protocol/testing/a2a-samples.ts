import type { A2aMessage, A2aPushConfig, A2aStreamResponse, A2aTask, AgentCard } from "../src/index.ts";

/** One of everything, in 1.0, with Chinese text and members that no specification knows. */
export const MESSAGE: A2aMessage = {
  messageId: "m-1",
  contextId: "c-1",
  role: "ROLE_USER",
  parts: [
    { text: "知微，请把这份报告译成英文。", metadata: { lang: "zh" } },
    { raw: "5oql5ZGK", filename: "报告.txt", mediaType: "text/plain" },
    { url: "https://files.example/a.png", mediaType: "image/png", "x-part": 1 },
    { data: { 名: "知微", list: [1, null] } },
    { data: null },
  ],
  metadata: { trace: "t-1" },
  extensions: ["https://example.com/ext/1"],
  referenceTaskIds: ["t-0"],
  "x-message": { kept: true },
};

const ANSWER: A2aMessage = {
  messageId: "m-2",
  contextId: "c-1",
  taskId: "t-1",
  role: "ROLE_AGENT",
  parts: [{ text: "哪一种英文？" }],
};

export const TASK: A2aTask = {
  id: "t-1",
  contextId: "c-1",
  status: {
    state: "TASK_STATE_INPUT_REQUIRED",
    timestamp: "2026-11-15T08:00:00.000Z",
    message: ANSWER,
  },
  artifacts: [
    {
      artifactId: "a-1",
      name: "译文",
      parts: [{ text: "Report" }, { data: [1, 2] }],
      metadata: { page: 1 },
      extensions: ["https://example.com/ext/1"],
    },
    { artifactId: "a-2", parts: [{ url: "https://files.example/b.pdf" }] },
  ],
  history: [MESSAGE],
  metadata: { "x-task": "留" },
};

export const PUSH_CONFIG: A2aPushConfig = {
  id: "p-1",
  taskId: "t-1",
  url: "https://hook.example/a2a",
  token: "令牌",
  authentication: { scheme: "Bearer", credentials: "secret" },
};

export const SEND_PARAMS = {
  tenant: "zhiwei",
  message: MESSAGE,
  configuration: {
    acceptedOutputModes: ["text/plain"],
    historyLength: 5,
    returnImmediately: false,
    taskPushNotificationConfig: { id: "p-1", url: "https://hook.example/a2a" },
  },
  metadata: { priority: "high" },
};

/** With whether the stream ends behind it. */
export const EVENTS: Readonly<Record<string, readonly [A2aStreamResponse, boolean]>> = {
  task: [{ task: TASK }, false],
  message: [{ message: ANSWER }, true],
  working: [
    {
      statusUpdate: {
        taskId: "t-1",
        contextId: "c-1",
        status: { state: "TASK_STATE_WORKING" },
        metadata: { n: 1 },
      },
    },
    false,
  ],
  canceled: [
    {
      statusUpdate: {
        taskId: "t-1",
        contextId: "c-1",
        status: { state: "TASK_STATE_CANCELED", timestamp: "2026-11-15T08:00:01.000Z" },
      },
    },
    true,
  ],
  artifact: [
    {
      artifactUpdate: {
        taskId: "t-1",
        contextId: "c-1",
        artifact: { artifactId: "a-1", name: "译文", parts: [{ text: "第二段" }] },
        append: true,
        lastChunk: true,
      },
    },
    false,
  ],
};

export const CARD: AgentCard = {
  name: "知微",
  description: "Translates reports",
  version: "1.2.0",
  supportedInterfaces: [
    { url: "https://relay.example/agents/zhiwei/a2a", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    { url: "https://relay.example/agents/zhiwei/a2a", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
    { url: "https://relay.example/agents/zhiwei/a2a", protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
  ],
  provider: { organization: "Example", url: "https://example.com" },
  capabilities: {
    streaming: true,
    pushNotifications: true,
    extendedAgentCard: true,
    extensions: [{ uri: "https://example.com/ext/1", required: false, params: { mode: "sleep" } }],
  },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [
    {
      id: "translate",
      name: "翻译",
      description: "Chinese to English",
      tags: ["zh", "en"],
      securityRequirements: [{ schemes: { bearer: { list: ["translate"] } } }],
    },
  ],
  securitySchemes: {
    bearer: { httpAuthSecurityScheme: { scheme: "bearer", bearerFormat: "opaque" } },
    key: { apiKeySecurityScheme: { location: "header", name: "x-api-key" } },
    oauth: {
      oauth2SecurityScheme: {
        flows: { clientCredentials: { tokenUrl: "https://id.example/token", scopes: { translate: "翻译" } } },
      },
    },
    oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: "https://id.example/.well-known" } },
    mtls: { mtlsSecurityScheme: { description: "client certificates" } },
  },
  securityRequirements: [{ schemes: { bearer: { list: [] } } }, { schemes: { key: { list: [] } } }],
};
