import {
  type ErrorBody,
  type LeaseResponse,
  RelayError,
  SOCKET_CLOSE,
  type SocketFrame,
  type SocketVerb,
} from "@a2a-relay/protocol";
import { Failure, readError } from "../http/http-answer.ts";
import { type CallOptions, toJson } from "../http/http-exchange.ts";
import { onAbort } from "../http/abort.ts";
import type { SocketConnection, SocketEnd } from "./socket-connection.ts";

export interface SocketCall extends CallOptions {
  readonly verb: SocketVerb;
  readonly input: object;
  /** The time limit of the answer; a socket that takes longer counts as broken. */
  readonly limitMs: number;
}

type AnswerFrame = Extract<SocketFrame, { readonly type: "answer" }>;

interface Pending {
  readonly verb: SocketVerb;
  readonly settle: (result: unknown) => void;
}

/** The open requests of a socket. */
export class SocketRequests {
  readonly #pending = new Map<string, Pending>();
  /** Aborted lease requests. Their messages are released, or they would stay leased until an operator acts. */
  readonly #abandoned = new Map<string, SocketConnection>();
  #count = 0;

  /** No request is lost when the socket ends now. */
  get isIdle(): boolean {
    return this.#pending.size === 0 && this.#abandoned.size === 0;
  }

  /** The body of the answer, or a Failure. Rejects only with the reason of the signal. */
  ask(connection: SocketConnection, { verb, input, limitMs, signal }: SocketCall): Promise<unknown> {
    this.#count += 1;
    const id = String(this.#count);
    const text = toJson({ id, verb, input });
    // A closed socket accepts and drops everything.
    if (connection.isOver) return Promise.resolve(new Failure(unsent(verb), "not_done"));
    return new Promise((resolve, reject) => {
      const forget = (): void => {
        clearTimeout(timer);
        unsubscribe();
        this.#pending.delete(id);
      };
      const settle = (result: unknown): void => {
        forget();
        resolve(result);
      };
      const unsubscribe = onAbort(signal, () => {
        forget();
        if (verb === "lease") this.#abandoned.set(id, connection);
        reject(signal?.reason);
      });
      const timer = setTimeout(() => {
        settle(new Failure(lateAnswer(verb, limitMs), "unknown"));
        connection.breakOff();
      }, limitMs);
      this.#pending.set(id, { verb, settle });
      connection.send(text);
    });
  }

  answered(frame: AnswerFrame): void {
    const pending = this.#pending.get(frame.id);
    if (pending !== undefined) pending.settle("error" in frame ? failureOf(frame) : frame.body);
    else if ("body" in frame) this.#giveBack(frame.id, frame.body);
    else this.#abandoned.delete(frame.id);
  }

  broke(end: SocketEnd): void {
    this.#abandoned.clear();
    for (const { verb, settle } of this.#pending.values()) settle(brokenFailure(verb, end));
  }

  #giveBack(id: string, body: unknown): void {
    const connection = this.#abandoned.get(id);
    if (connection === undefined) return;
    this.#abandoned.delete(id);
    const leases = (body as LeaseResponse).messages.map(({ message_id, lease }) => ({
      message_id,
      lease_id: lease.id,
    }));
    if (leases.length === 0) return;
    this.#count += 1;
    connection.send(toJson({ id: String(this.#count), verb: "release", input: { leases } }));
  }
}

/** A temporary refusal means that the relay did nothing. */
function failureOf({ error }: ErrorBody): Failure {
  const read = readError(error, undefined);
  const isNotNow = read.code === "unavailable" || read.code === "resource_exhausted";
  return new Failure(read, isNotNow ? "not_done" : "refused");
}

function brokenFailure(verb: SocketVerb, { code, reason }: SocketEnd): Failure {
  if (code === SOCKET_CLOSE.tooLarge) {
    return new Failure(
      new RelayError("too_large", `${verb}: more than the relay takes in one frame`),
      "refused",
    );
  }
  const why = reason === "" ? `code ${code}` : `code ${code}, ${reason}`;
  const message = `the socket closed (${why}) before the answer to ${verb} came; the relay may have acted on it`;
  return new Failure(new RelayError("unavailable", message), "unknown");
}

function lateAnswer(verb: SocketVerb, limitMs: number): RelayError {
  return new RelayError("unavailable", `${verb} got no answer over the socket within ${limitMs} ms`);
}

function unsent(verb: SocketVerb): RelayError {
  return new RelayError("unavailable", `${verb} could not be sent: the socket has just closed`);
}
