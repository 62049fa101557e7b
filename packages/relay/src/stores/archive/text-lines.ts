import { RelayError } from "@a2a-relay/protocol";

export interface TextLine {
  readonly text: string;
  /** False for what stands behind the last line break. */
  readonly ended: boolean;
}

/** Far more than any line of an archive; a file without line breaks must not fill the memory. */
const LINE_CHARS_MAX = 16 * 1024 * 1024;

/** The lines of a text, ended by LF alone: JSON may contain other line separators. */
export async function* textLines(
  chunks: AsyncIterable<Uint8Array>,
  lineCharsMax = LINE_CHARS_MAX,
): AsyncGenerator<TextLine, void, void> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let rest = "";
  for await (const chunk of chunks) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    for (const text of parts) yield { text, ended: true };
    if (rest.length > lineCharsMax) {
      throw new RelayError("too_large", `a line has more than ${lineCharsMax} characters`);
    }
  }
  rest += decoder.decode();
  if (rest !== "") yield { text: rest, ended: false };
}
