import { A2aError, RelayError } from "@a2a-relay/protocol";
import type { A2aEvent, A2aPage } from "../../core/a2a/a2a-streams.ts";
import { type EventStream, eventStream, type ServerSentEvent } from "../http/event-stream.ts";

/** How a binding writes what comes on a stream. */
export interface A2aEventWriter {
  event(event: A2aEvent): unknown;
  error(error: RelayError): Pick<ServerSentEvent, "event" | "data">;
}

/**
 * Ids are the numbers of the steps. What goes wrong behind the first event is told in the stream, since the answer has
 * begun; its id is that of the event before it, so that whoever comes back has missed nothing.
 */
export function a2aEventStream(pages: AsyncIterable<A2aPage>, writer: A2aEventWriter): EventStream {
  let lastId: string | undefined;
  let isOver = false;
  const stream = eventStream("a2a", pages, ({ events }) =>
    events.map((event) => ({ id: String(event.n), data: JSON.stringify(writer.event(event)) })),
  );
  return {
    kind: stream.kind,
    next: async () => {
      if (isOver) return undefined;
      try {
        const events = await stream.next();
        lastId = events?.at(-1)?.id ?? lastId;
        return events;
      } catch (reason) {
        if (lastId === undefined || !(RelayError.from(reason) instanceof A2aError)) throw reason;
        isOver = true;
        return [{ id: lastId, ...writer.error(RelayError.from(reason)) }];
      }
    },
  };
}
