import type { RemoteInterface } from "./remote-interface.ts";
import type { RemoteAnswer } from "../ports/remote-task.ts";

/** What an agent elsewhere answered to a message, and over which of its interfaces. */
export interface RemoteReply {
  readonly at: RemoteInterface;
  readonly answer: RemoteAnswer;
}
