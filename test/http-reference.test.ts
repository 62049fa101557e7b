import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { STATUS_CODES } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { a2aEndpoints, operations, operationsIn, toBase58 } from "@a2a-relay/protocol";
import { loadConfig, type RunningRelay, startRelay } from "a2a-relay";

/**
 * Replays docs/reference/http.md from top to bottom against a fresh relay under a fake clock: a request
 * block is sent, and its answer must be the block after it. A comment `<!-- first: METHOD /path {body} -->` is
 * a request that readers need not see, `<!-- then: {…} -->` names ids from its answer. With UPDATE_DOCS=1 the
 * answers are written into the page instead.
 */

const PAGE = join(import.meta.dirname, "..", "docs", "reference", "http.md");
const UPDATE = "run UPDATE_DOCS=1 npx node --conditions=source --test test/http-reference.test.ts";
const STARTS_AT_MS = Date.parse("2026-05-08T08:30:00Z");
const LINE_CHARS_MAX = 104;

/** Ids and hashes differ each time; on the page they are numbered, so that requests can name them. */
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Ids of keys and capabilities are numbered by themselves, in front of a secret that is never the same. */
const KEPT_ID = /(key_|cap_)([0-9a-f-]{36})(\.[1-9A-HJ-NP-Za-km-z]{32,44})?/g;
/** Public keys, also in the action of a capability, and signatures. */
const BASE58 =
  /(?<="(?:a2a\.(?:send|recv|respond)\.)?)(?:[1-9A-HJ-NP-Za-km-z]{32,44}|[1-9A-HJ-NP-Za-km-z]{80,88})(?=")/g;
/** Secrets that sign. */
const SIGNING_SECRET = /whsec_[\w+/=]{20,}/g;
const NONCE = /(?<="nonce":")[1-9A-HJ-NP-Za-km-z]+(?=")/g;
const HASH = /\b[0-9a-f]{64}\b/g;

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  /** Where the expected answer stands on the page, and what it is; absent when it is not shown. */
  readonly answer: { readonly text: string; readonly index: number } | undefined;
  /** A part of an answer that is not shown. */
  readonly names: string | undefined;
}

describe("the HTTP reference", () => {
  const page = readFileSync(PAGE, "utf8");

  it("has a heading for every operation of the table, and no other", () => {
    const all = [...operationsIn(operations), ...operationsIn(a2aEndpoints)];
    const served = all.map(({ method, path }) => `${method} ${path}`);
    const headings = page.match(/^### .+$/gm) ?? [];
    const described = headings.flatMap((heading) => [...heading.matchAll(/`([A-Z]+ [^`]+)`/g)]);
    assert.deepEqual(described.map((match) => match[1] ?? "").toSorted(), served.toSorted());
  });

  it("shows requests that can be made, and the answers they get", async () => {
    await using relay = await DocumentedRelay.start();
    const answers: { readonly index: number; readonly length: number; readonly text: string }[] = [];
    for (const exchange of exchangesOf(page)) {
      const said = await relay.ask(exchange);
      if (exchange.names !== undefined) assert.ok(relay.learn(JSON.parse(exchange.names), said.json));
      if (exchange.answer === undefined) continue;
      answers.push({ ...exchange.answer, length: exchange.answer.text.length, text: said.text });
      if (process.env["UPDATE_DOCS"] === undefined) {
        const where = `${exchange.method} ${exchange.path}: the page says otherwise; if it is meant, ${UPDATE}`;
        assert.equal(said.text, exchange.answer.text, where);
      }
    }
    if (process.env["UPDATE_DOCS"] !== undefined) await writeFile(PAGE, replaceAll(page, answers));
  });
});

function exchangesOf(page: string): readonly Exchange[] {
  const request =
    /^```http\n(?<shown>[A-Z]+ \/.*?)\n```\n\n```http\n(?<answer>.*?)\n```$|^<!-- first: (?<hidden>.*?) -->$(?:\n<!-- then: (?<names>.*?) -->$)?/gms;
  return [...page.matchAll(request)].map(({ groups = {}, index, 0: all }) => {
    const { shown, hidden, answer, names } = groups;
    const [, method = "", path = "", body] = /^(\S+) (\S+)\s*(.*)$/s.exec(shown ?? hidden ?? "") ?? [];
    return {
      method,
      path,
      body: body === "" ? undefined : body,
      answer: answer === undefined ? undefined : { text: answer, index: index + all.lastIndexOf(answer) },
      names,
    };
  });
}

function replaceAll(
  page: string,
  parts: readonly { readonly index: number; readonly length: number; readonly text: string }[],
): string {
  return parts.reduceRight(
    (text, part) => text.slice(0, part.index) + part.text + text.slice(part.index + part.length),
    page,
  );
}

class DocumentedRelay implements AsyncDisposable {
  readonly #relay: RunningRelay;
  readonly #data: string;
  readonly #clock: { nowMs: number };
  /** From the relay's ids to those of the page, and back. */
  readonly #shownIds = new Map<string, string>();
  readonly #realIds = new Map<string, string>();
  readonly #hashes = new Map<string, string>();
  readonly #publicKeys = new Map<string, string>();
  #keptIds = 0;

  private constructor(relay: RunningRelay, data: string, clock: { nowMs: number }) {
    this.#relay = relay;
    this.#data = data;
    this.#clock = clock;
  }

  static async start(): Promise<DocumentedRelay> {
    const data = await mkdtemp(join(tmpdir(), "a2a-relay-reference-"));
    const clock = { nowMs: STARTS_AT_MS };
    // No anchor in the middle of it, whatever time the page takes.
    const never = { "anchor-interval-ms": "86400000" };
    const flags = { ...never, port: "0", data, "log-level": "silent", "public-url": "http://127.0.0.1:8080" };
    const config = loadConfig({ flags, env: {}, dotenv: {} });
    const relay = await startRelay(config, {
      clock: { nowMs: () => clock.nowMs, nextTurn: () => nextTurn() },
    });
    return new DocumentedRelay(relay, data, clock);
  }

  /** A second passes between two requests. */
  async ask(exchange: Exchange): Promise<{ readonly text: string; readonly json: unknown }> {
    this.#clock.nowMs += 1_000;
    const { method, path, body } = exchange;
    const response = await fetch(this.#relay.url + this.#toReal(path), {
      method,
      ...(body === undefined
        ? {}
        : { body: this.#toReal(body), headers: { "content-type": "application/json" } }),
    });
    const text = await response.text();
    assert.ok(exchange.answer !== undefined || response.ok, `${method} ${path}: ${text}`);
    const json: unknown = JSON.parse(text);
    if (exchange.answer === undefined) return { json, text: "" };
    const status = `${response.status} ${STATUS_CODES[response.status] ?? ""}`;
    return { json, text: `${status}\n\n${layOut(JSON.parse(this.#toShown(text)))}` };
  }

  /** Takes the page's names for the ids in an answer; false when the answer does not have what is named. */
  learn(named: unknown, answer: unknown): boolean {
    if (typeof named === "string" && typeof answer === "string") {
      this.#shownIds.set(answer, named);
      this.#realIds.set(named, answer);
      return true;
    }
    if (typeof named !== "object" || named === null || typeof answer !== "object" || answer === null) {
      return named === answer;
    }
    const members = answer as Readonly<Record<string, unknown>>;
    return Object.entries(named).every(([key, value]) => this.learn(value, members[key]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#relay[Symbol.asyncDispose]();
    await rm(this.#data, { recursive: true, force: true });
  }

  #toReal(text: string): string {
    return text.replaceAll(ID, (id) => this.#realIds.get(id) ?? id);
  }

  #toShown(text: string): string {
    const kept = text.replaceAll(KEPT_ID, (_, prefix: string, id: string, secret?: string) => {
      if (!this.#shownIds.has(id)) this.#keptIds += 1;
      const shown = this.#show(
        id,
        `019e06ea-0000-7000-8000-00000000c${String(this.#keptIds).padStart(3, "0")}`,
      );
      return prefix + shown + (secret === undefined ? "" : ".…");
    });
    const numbered = kept.replaceAll(ID, (id) =>
      // What was shown above is no id of the relay any more.
      this.#realIds.has(id) ? id : this.#show(id, numberedId(this.#shownIds.size - this.#keptIds + 1)),
    );
    const hashed = numbered.replaceAll(HASH, (real) => {
      const shown = this.#hashes.get(real) ?? `${hash("sha256", String(this.#hashes.size)).slice(0, 8)}…`;
      this.#hashes.set(real, shown);
      return shown;
    });
    const keyed = hashed.replaceAll(BASE58, (real: string) => {
      const shown =
        this.#publicKeys.get(real) ?? toBase58(hash("sha256", String(this.#publicKeys.size), "buffer"));
      this.#publicKeys.set(real, shown);
      return shown;
    });
    return keyed.replaceAll(NONCE, "TjGQfpyt5DcXDKVLxcpkFo").replaceAll(SIGNING_SECRET, "whsec_…");
  }

  #show(id: string, shownAs: string): string {
    const shown = this.#shownIds.get(id) ?? shownAs;
    this.#shownIds.set(id, shown);
    this.#realIds.set(shown, id);
    return shown;
  }
}

function numberedId(count: number): string {
  return `019e06ea-0000-7000-8000-${String(count).padStart(12, "0")}`;
}

/** JSON in as few lines as fit the page. */
function layOut(value: unknown, indent = ""): string {
  const line = inOneLine(value);
  if (typeof value !== "object" || value === null || indent.length + line.length <= LINE_CHARS_MAX)
    return line;
  const deeper = `${indent}  `;
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const items = Object.entries(value).map(([key, item]) => {
    const name = Array.isArray(value) ? "" : `${JSON.stringify(key)}: `;
    return `${deeper}${name}${layOut(item, deeper)}`;
  });
  return `${open}\n${items.join(",\n")}\n${indent}${close}`;
}

function inOneLine(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(inOneLine).join(", ")}]`;
  const members = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${inOneLine(item)}`);
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`;
}
