import assert from "node:assert/strict";

/** An open event stream, read block by block: what is between two empty lines, unparsed. */
export class SseBlocks implements AsyncDisposable {
  readonly response: Response;
  readonly #left: AbortController;
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  private constructor(response: Response, left: AbortController) {
    assert.ok(response.body, "the answer has no body");
    this.response = response;
    this.#left = left;
    this.#chunks = response.body[Symbol.asyncIterator]();
  }

  /** `msMax` ends a stream that goes on for longer. */
  static async open(url: string, init: RequestInit, msMax?: number): Promise<SseBlocks> {
    const left = new AbortController();
    const late = msMax === undefined ? [] : [AbortSignal.timeout(msMax)];
    const headers = { accept: "text/event-stream", ...(init.headers as Record<string, string>) };
    const response = await fetch(url, { ...init, headers, signal: AbortSignal.any([left.signal, ...late]) });
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true)
      assert.fail(`no stream: ${response.status} ${await response.text()}`);
    return new SseBlocks(response, left);
  }

  /** Undefined at the end; rejects when the connection breaks. */
  async next(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end !== -1) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return block;
      }
      const step = await this.#chunks.next();
      if (step.done === true) return undefined;
      this.#text += this.#decoder.decode(step.value, { stream: true });
    }
  }

  /** Breaks the connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#left.abort();
    await this.#chunks.next().catch(() => undefined);
  }
}
