import type { A2aDialect } from "./a2a-dialect.ts";
import type { A2aStreamResponse } from "./a2a-json.ts";
import { asAnswer, readAnswer } from "./answer-reader.ts";
import { readCard } from "./card-dialect.ts";
import { readWrapped } from "./v1-form.ts";
import { readV1Params } from "./v1-params.ts";

/** 1.0: what we think in, so reading and writing are the same, but for what was kept in an older form. */
export const V1_DIALECT: A2aDialect = {
  version: "1.0",
  methods: {
    send: "SendMessage",
    stream: "SendStreamingMessage",
    get: "GetTask",
    list: "ListTasks",
    cancel: "CancelTask",
    subscribe: "SubscribeToTask",
    "push-create": "CreateTaskPushNotificationConfig",
    "push-get": "GetTaskPushNotificationConfig",
    "push-list": "ListTaskPushNotificationConfigs",
    "push-delete": "DeleteTaskPushNotificationConfig",
    "extended-card": "GetExtendedAgentCard",
  },
  pushes: "event",
  readParams: readV1Params,
  writeParams: readV1Params,
  readResult: readAnswer,
  writeResult: readAnswer,
  readEvent: (event) => asAnswer(() => readWrapped(event) as A2aStreamResponse),
  writeEvent: (event) => readWrapped(event),
  readCard,
  writeCard: readCard,
};
