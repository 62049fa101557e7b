import { createContext, Script } from "node:vm";
import { type Message, RelayError } from "@a2a-relay/protocol";
import { CASSETTE_LIMITS, type MessageMatch } from "./cassette.ts";

/** What of a message decides about its answer. */
export type MatchedMessage = Pick<Message, "type" | "from" | "subject" | "body">;

export function matches(match: MessageMatch, message: MatchedMessage): boolean {
  const { kinds, text, contains, regex, from, subject } = match;
  if (!kinds.includes(message.type)) return false;
  if (text !== undefined && text.trim() !== message.body.trim()) return false;
  if (contains !== undefined && !message.body.includes(contains)) return false;
  if (from !== undefined && from !== message.from) return false;
  if (subject !== undefined && subject !== message.subject) return false;
  return regex === undefined || isFound(regex, message.body);
}

/** A context of its own, because only there can a running match be stopped. */
let matcher: ((regex: RegExp, text: string) => unknown) | undefined;

/** Some patterns take centuries on the wrong message, and others write the messages. */
function isFound(regex: RegExp, text: string): boolean {
  matcher ??= createMatcher();
  try {
    return matcher(regex, text) === true;
  } catch (cause) {
    if (!isTimeout(cause)) throw cause;
    throw new RelayError(
      "invalid_argument",
      `the regex ${regex.source} took over ${CASSETTE_LIMITS.regexMsMax} ms on a message; write a simpler one`,
    );
  }
}

function createMatcher(): (regex: RegExp, text: string) => unknown {
  const context = createContext(Object.create(null) as object) as { regex?: RegExp; text?: string };
  const script = new Script("regex.test(text)");
  return (regex, text) => {
    Object.assign(context, { regex, text });
    const found: unknown = script.runInContext(context, { timeout: CASSETTE_LIMITS.regexMsMax });
    return found;
  };
}

/** Errors of that context are no instances of our Error. */
function isTimeout(cause: unknown): boolean {
  return (
    typeof cause === "object" &&
    cause !== null &&
    "code" in cause &&
    cause.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}
