import type { EventView } from "@a2a-relay/protocol";

/** What an event is about, beyond its type and ids, in a few words; empty when there is nothing to add. */
export function eventGist({ type, data }: EventView): string {
  const text = (name: string): string => (typeof data[name] === "string" ? data[name] : "");
  if (type === "capability_check") return checkGist(text("agent_id"), text("reason"), data);
  if (type === "access.denied") {
    return joined([text("verb"), text("tenant") && `in ${text("tenant")}`, text("reason")]);
  }
  if (type.startsWith("key.")) return text("key_id");
  if (type.startsWith("capability.")) return joined([text("capability_id"), text("action")]);
  return text("reason");
}

function checkGist(subject: string, reason: string, data: EventView["data"]): string {
  if (data["passed"] === true) return `${subject} passed`;
  const missing = Array.isArray(data["missing_actions"]) ? data["missing_actions"].join(", ") : "";
  return joined([`${subject} refused`, missing && `without ${missing}`, reason && `(${reason})`]);
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" ");
}
