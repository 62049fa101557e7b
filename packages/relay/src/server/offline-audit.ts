import { viewEvent } from "../core/journal/event-view.ts";
import {
  anchorFrom,
  type AnchorRecord,
  eventFrom,
  ExportedChain,
  type ExportReport,
  type NotedAnchor,
} from "../core/journal/exported-chain.ts";
import type { EventRecord } from "../core/ports/journal.ts";
import { textLines } from "../stores/archive/text-lines.ts";

// The command line checks exports without a running relay. It may import the core only through the server.
export {
  eventFrom,
  ExportedChain,
  type ExportReport,
  type NotedAnchor,
  notedProblem,
} from "../core/journal/exported-chain.ts";

/** Recomputes every hash of an export. Needs no relay. */
export async function verifyExport(
  chunks: AsyncIterable<Uint8Array>,
  noted?: NotedAnchor,
): Promise<ExportReport> {
  const chain = new ExportedChain(noted);
  let number = 0;
  let isComplete = false;
  for await (const { text } of textLines(chunks)) {
    number += 1;
    const line = readLine(text);
    if (line === undefined) {
      return chain.report(`line ${number} is not as the relay writes it: it was edited or cut`);
    }
    const problem = "event" in line ? chain.add(line.event) : chain.compare(line.anchor);
    if (problem !== undefined) return chain.report(`line ${number}: ${problem}`);
    isComplete = "anchor" in line;
  }
  if (chain.last === undefined) return chain.report("there are no events in it");
  if (isComplete) return chain.report(chain.end());
  const cut = "the last line is not an anchor record: the end was cut off, or the export was not finished";
  return chain.report(chain.end() ?? cut);
}

/** An event as a line of an export. */
export function eventLine(event: EventRecord): string {
  return JSON.stringify(viewEvent(event));
}

/** The last line of an export. */
export function anchorLine({ tenant, seq, hash, at }: AnchorRecord): string {
  return JSON.stringify({ anchor: { tenant, seq, hash, at } });
}

/**
 * Undefined unless the text is exactly as the relay writes it. A duplicate member, or one that the hash does not cover,
 * would else be read by people but not by the check.
 */
function readLine(
  text: string,
): { readonly event: EventRecord } | { readonly anchor: AnchorRecord } | undefined {
  const value = valueFrom(text);
  const event = eventFrom(value);
  if (event !== undefined) return eventLine(event) === text ? { event } : undefined;
  const anchor = anchorFrom((value as { readonly anchor?: unknown } | null | undefined)?.anchor);
  return anchor !== undefined && anchorLine(anchor) === text ? { anchor } : undefined;
}

function valueFrom(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
