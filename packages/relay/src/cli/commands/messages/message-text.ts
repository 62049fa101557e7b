import { type MailboxItem, type Message, type Part, textOfParts } from "@a2a-relay/protocol";
import { formatTime } from "../../terminal/duration.ts";
import { type Paint, visibleLine, visibleText } from "../../terminal/text.ts";

/** A message for people. The body is indented, so that no body can pass for a header. */
export function messageLines(
  item: Pick<MailboxItem, "message" | "task_id">,
  paint: Paint,
): readonly string[] {
  const { message } = item;
  const marks = [
    typeof message["task_state"] === "string" ? `task ${message["task_state"]}` : "",
    message.needs_reply ? "needs reply" : "",
    message.urgency === "normal" ? "" : `${message.urgency} urgency`,
  ].filter((mark) => mark !== "");
  const route = `${message.from} -> ${message.to}`;
  return [
    [
      paint("cyan", message.type),
      paint("bold", visibleLine(route)),
      formatTime(message.created_at),
      ...marks.map((mark) => paint("yellow", mark)),
    ].join("  "),
    ...(message.subject === "" ? [] : [paint("bold", visibleLine(message.subject))]),
    paint("dim", visibleLine(identityLine(item))),
    ...bodyLines(message),
    "",
  ];
}

/** The default subject of a reply. */
export function replySubject(subject: string): string {
  if (subject === "") return "Re";
  return subject.startsWith("Re:") ? subject : `Re: ${subject}`;
}

function identityLine(item: Pick<MailboxItem, "message" | "task_id">): string {
  const { message, task_id: taskId } = item;
  return [
    `id ${message.id}`,
    `thread ${message.thread_id}`,
    ...(taskId === undefined ? [] : [`task ${taskId}`]),
    ...(message.reply_to === undefined ? [] : [`reply to ${message.reply_to}`]),
  ].join("  ");
}

function bodyLines(message: Message): readonly string[] {
  const parts: readonly Part[] = message.parts ?? [];
  const text = message.body === "" ? textOfParts(parts) : message.body;
  const other = parts.filter((part) => typeof part["text"] !== "string").length;
  const lines = text === "" ? [] : visibleText(text).replace(/\n+$/, "").split("\n");
  const more =
    other === 0
      ? []
      : [
          `[${other} part${other === 1 ? "" : "s"} that ${other === 1 ? "is" : "are"} not text; --json shows ${other === 1 ? "it" : "them"}]`,
        ];
  return [...lines, ...more].map((line) => `  ${line}`);
}
