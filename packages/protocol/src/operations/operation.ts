import type { Static, TObject, TSchema } from "typebox";
import type { RelayErrorCode } from "../base/relay-error.ts";
import type { Frozen } from "../base/schema.ts";
import type { Verb } from "../wire/access.ts";

/**
 * When a client may repeat a failed attempt:
 * - `always`: the call may safely happen twice;
 * - `with_key`: the same, because the request carries an id or a key by which the relay recognises it;
 * - `if_not_done`: only when the relay certainly did nothing;
 * - `never`: the answer is about this moment.
 */
export type Repeat = "always" | "with_key" | "if_not_done" | "never";

export interface OperationAnswer {
  readonly description: string;
  /** Absent: no body. */
  readonly schema?: TSchema;
  /** Absent: JSON. */
  readonly mediaType?: "text/html" | "text/plain";
}

/** How a list continues: a member of the answer goes into a member of the next query. */
export interface Paging {
  readonly items: string;
  readonly next: string;
  readonly query: string;
}

export interface OperationExample {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: object;
}

/**
 * One operation of the relay, the only description of its route. The server's routes, the OpenAPI document, the
 * client's methods, the headings of the reference and the permission tests follow from it.
 */
export interface Operation extends OperationEntry {
  /** `noun.verb`, such as `messages.send`: its name in the SDK and its id in the OpenAPI document. */
  readonly name: string;
}

export interface OperationEntry {
  readonly method: "GET" | "POST" | "DELETE";
  /** With `{name}` for a parameter. */
  readonly path: `/${string}`;
  readonly tag: string;
  readonly summary: string;
  /** Who may call: absent, callers with a key; `true`, all callers; `unless-keyed`, a key that is shown is checked. */
  readonly open?: true | "unless-keyed";
  /** What a key that is limited to verbs needs. */
  readonly verbs: readonly Verb[];
  readonly query?: TObject;
  readonly body?: TSchema;
  /** Successes by status. */
  readonly answers: Readonly<Record<number, OperationAnswer>>;
  /** Besides those that follow from the rest of the entry; see `errorsOf`. */
  readonly errors: readonly RelayErrorCode[];
  /** A function where it depends on the body. */
  readonly repeat: Repeat | ((body: never) => Repeat);
  readonly paging?: Paging;
  /** Whether the answer is a stream of events. */
  readonly streams?: "always" | "on request";
  /** The data of each event of the stream. */
  readonly event?: TSchema;
  /** The operation may wait, for `wait_ms` or as a stream, so it has no HEAD. */
  readonly waits?: boolean;
  /** How long a whole-store operation may take, in milliseconds. */
  readonly durationMsMax?: number;
  /** A GET that takes messages, which no link on another site's page may do. */
  readonly drains?: boolean;
  /** The last parameter takes the rest of the path. */
  readonly isOpenEnded?: boolean;
  /** The signature in the body replaces the key. */
  readonly isSigned?: boolean;
  readonly bodyBytesMax?: number;
  readonly example: OperationExample;
}

export type OperationEntries = Readonly<Record<string, OperationEntry>>;

type Nouns = Readonly<Record<string, OperationEntries>>;
export type Named<Tables extends Nouns> = {
  readonly [Noun in keyof Tables]: {
    readonly [Key in keyof Tables[Noun]]: Tables[Noun][Key] & { readonly name: string };
  };
};

/** Names each entry by its noun and its key. */
export function named<Tables extends Nouns>(tables: Tables): Named<Tables> {
  const nouns = Object.entries(tables).map(([noun, entries]) => [
    noun,
    Object.fromEntries(
      Object.entries(entries).map(([key, entry]) => [key, { ...entry, name: `${noun}.${key}` }]),
    ),
  ]);
  return Object.fromEntries(nouns) as Named<Tables>;
}

/** All entries of a table. */
export function operationsIn(
  tables: Readonly<Record<string, Readonly<Record<string, Operation>>>>,
): readonly Operation[] {
  return Object.values(tables).flatMap((entries) => Object.values(entries));
}

/** The body of a successful answer. */
export type AnswerOf<Entry extends Pick<Operation, "answers">> = Frozen<
  {
    [Status in keyof Entry["answers"]]: Entry["answers"][Status] extends {
      readonly schema: infer Schema extends TSchema;
    }
      ? Static<Schema>
      : never;
  }[keyof Entry["answers"]]
>;

/** The names in a path. */
export type ParamsOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamsOf<Rest>
  : never;

/** The path with its parameters, each written by `encode` as one segment. */
export function pathOf<Entry extends Pick<Operation, "path">>(
  { path }: Entry,
  params: Readonly<Record<ParamsOf<Entry["path"]>, string>>,
  encode: (value: string) => string = encodeURIComponent,
): string {
  const values: Readonly<Record<string, string>> = params;
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encode(values[name] ?? ""));
}

/** What a call of the operation consists of. */
export type RequestOf<Entry extends Operation> = ([ParamsOf<Entry["path"]>] extends [never]
  ? unknown
  : { readonly params: Readonly<Record<ParamsOf<Entry["path"]>, string>> }) &
  (Entry extends { readonly query: infer Query extends TObject }
    ? { readonly query?: Static<Query> }
    : unknown) &
  (Entry extends { readonly body: infer Body extends TSchema } ? { readonly body: Static<Body> } : unknown);

/** Whether a call with this body may be repeated. */
export function repeatOf({ repeat }: Operation, body: unknown): Repeat {
  return typeof repeat === "function" ? repeat(body as never) : repeat;
}

const ANY: readonly RelayErrorCode[] = ["invalid_argument", "resource_exhausted", "unavailable", "internal"];
const KEYED: readonly RelayErrorCode[] = ["unauthenticated", "permission_denied"];
const WITH_BODY: readonly RelayErrorCode[] = ["too_large", "unsupported_media_type"];
const WRITING: readonly RelayErrorCode[] = ["storage_full"];

/** Every error that the operation may answer. */
export function errorsOf({ method, open, body, errors }: Operation): readonly RelayErrorCode[] {
  return [
    ...new Set([
      ...ANY,
      ...(open === true ? [] : KEYED),
      ...(body === undefined ? [] : WITH_BODY),
      ...(method === "GET" ? [] : WRITING),
      ...errors,
    ]),
  ];
}
