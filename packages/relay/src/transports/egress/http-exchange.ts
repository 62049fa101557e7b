import { quote } from "@a2a-relay/protocol";
import type { Dispatcher } from "undici";
import { type OutboundAnswer, OutboundFailure, type OutboundRequest } from "./http-client.ts";
import { exchangeFailure } from "./failure.ts";

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

/** Informational (1xx) answers before the final one. */
const INFORMATIONAL_MAX = 16;

/** One request and its answer, as an undici handler. Ends when the answer is complete, too long or too late. */
export class HttpExchange implements Dispatcher.DispatchHandler {
  readonly answer: Promise<OutboundAnswer>;
  readonly #resolve: (answer: OutboundAnswer) => void;
  readonly #reject: (failure: OutboundFailure) => void;
  readonly #host: string;
  readonly #bytesMax: number;
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #chunks: Buffer[] = [];
  #informational = 0;
  #bytes = 0;
  #status = 0;
  #headers: Readonly<Record<string, string>> = {};
  #controller: Dispatcher.DispatchController | undefined;
  #isOver = false;

  constructor(host: string, request: Pick<OutboundRequest, "timeoutMs" | "answerBytesMax" | "signal">) {
    const { promise, resolve, reject } = Promise.withResolvers<OutboundAnswer>();
    this.answer = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#host = host;
    this.#bytesMax = request.answerBytesMax;
    this.#timer = setTimeout(() => this.#timeOut(request.timeoutMs), request.timeoutMs);
    this.#signal = request.signal;
    this.#signal?.addEventListener("abort", this.#abort, { once: true });
    if (this.#signal?.aborted === true) this.#abort();
  }

  /** Whether the answer is settled; then nothing more may be sent. */
  get isOver(): boolean {
    return this.#isOver;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The exchange ended while it waited for a connection.
    if (this.#isOver) controller.abort(new Error("given up"));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200) return this.#countInformational();
    this.#status = status;
    this.#headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, firstOf(value)] as const),
    );
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk.subarray(0, this.#bytesMax - this.#bytes));
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) this.#succeed();
  }

  onResponseEnd(): void {
    this.#succeed();
  }

  onResponseError(_controller: Dispatcher.DispatchController, reason: Error): void {
    this.#fail(exchangeFailure(this.#host, reason, this.#sent));
  }

  #countInformational(): void {
    this.#informational += 1;
    if (this.#informational <= INFORMATIONAL_MAX) return;
    const message = `${quote(this.#host)} announces its answer again and again`;
    this.#fail(new OutboundFailure("protocol", message, this.#sent));
  }

  readonly #abort = (): void => {
    const options = { cause: this.#signal?.reason as unknown, ...this.#sent };
    this.#fail(new OutboundFailure("aborted", "the request was given up", options));
  };

  #timeOut(timeoutMs: number): void {
    const message = `${quote(this.#host)} gave no whole answer within ${timeoutMs} ms`;
    this.#fail(new OutboundFailure("timeout", message, this.#sent));
  }

  /** Undici gives the request its controller when it begins to write it. */
  get #sent(): { readonly mayHaveArrived: boolean } {
    return { mayHaveArrived: this.#controller !== undefined };
  }

  #succeed(): void {
    const isCut = this.#bytes > this.#bytesMax;
    // `stream` drops a character that the limit cuts in two.
    const text = new TextDecoder().decode(Buffer.concat(this.#chunks), { stream: isCut });
    this.#resolve({ status: this.#status, headers: this.#headers, text });
    this.#end();
  }

  #fail(failure: OutboundFailure): void {
    this.#reject(failure);
    this.#end();
  }

  /** Undici closes the connection of an exchange that is aborted before its end; later it ignores the abort. */
  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#controller?.abort(new Error("over"));
  }
}

function firstOf(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value[0] : value) ?? "";
}
