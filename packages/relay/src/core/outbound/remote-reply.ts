import type { RemoteAnswer, RemoteInterface } from "../ports/remote-tasks.ts";

/** What an agent elsewhere answered to a message, and over which of its interfaces. */
export interface RemoteReply {
  readonly at: RemoteInterface;
  readonly answer: RemoteAnswer;
}
