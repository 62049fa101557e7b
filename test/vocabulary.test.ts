import { describe, it } from "node:test";
import { assertNone, assertNowhere, at, sources, texts } from "./support/tree.ts";

/** The words that CONTRIBUTING.md asks for, checked: one word per thing, in code and in prose. */

/** Retired word → what to say. Whole words, any case; `MailSource`, `mail-source` and `MAIL_MAX` hold "mail". */
const RETIRED: Readonly<Record<string, string>> = {
  "letters?": "message",
  "mails?": "message, delivery, mailbox or inbox",
  stationery: "the name of the mechanism",
  "places?": "position, slot, row or location",
  "life|lives": "round trip, lifetime or heartbeat",
  "look(?:s|ed|ing)?": "poll, check, read or search",
  "whoever|whomever": "agent, caller, reader, sender or operator",
  "somebody|nobody|anybody": "agent, caller, reader, sender or operator",
  elsewhere: "remote, outside or another",
  "comes? by": "arrives, is pushed",
  "of which": "two sentences",
};

/** Names on wires, in stored rows and in hashed events stay. */
const EXEMPT: readonly { readonly pattern: RegExp; readonly in?: RegExp; readonly why: string }[] = [
  { pattern: /(["'`])mail\1|\bpurpose=mail\b/g, why: "the type of a frame and the purpose of a delivery" },
  { pattern: /\bmail\.(?:retired|compact)\b/g, why: "an event type, and a verb of the permissions" },
  { pattern: /(?<![a-z])mail[-_]?retention[-_]?ms\b/gi, why: "a setting" },
  {
    pattern: /\b(?:accepted_)?place\b/g,
    in: /^packages\/relay\/src\/stores\/sqlite\/|^test\/faults\/(?:tampering|forged-chain)\b/,
    why: "columns of applied migrations",
  },
  { pattern: /\bmail: (?:false|true|first)\b/g, in: /\/wait(?:\.test)?\.ts$/, why: "JSON of `wait --json`" },
  {
    pattern: /\b(?:anybody|look|looking|somebody)\b/g,
    in: /discovery\/agent-search\.ts$/,
    why: "words that a search skips",
  },
  {
    pattern: /`(?:failMail|StreamedMail|MailFrame|MailTransportChoice|mail\(\))`/g,
    in: /^CHANGELOG\.md$/,
    why: "names that were retired",
  },
  { pattern: /0007-acceptance-by-letter/g, why: "an applied migration" },
  { pattern: /@[\w-]*mail\b|\be-?mail\b/gi, why: "electronic mail" },
  {
    pattern: /\bletters?,? (?:and|or|digits)|\b(?:lower-case|upper-case|capital) letters?\b/gi,
    why: "letters of an alphabet",
  },
];

/** Applied migrations, and this list. */
const NOT_CHECKED = /\.sql$|^LICENSE$|^test\/vocabulary\.test\.ts$/;

/** Class-like names for standard mechanisms, and files named after them. */
const RETIRED_NAMES = new RegExp(
  [
    /\b(?:Known|Waiting)[A-Z]\w*/,
    /\b\w+(?:Turns|Lanes|Pace|Waiters)\b/,
    /\b(?:class|interface|type|new) (?:Known|Waiting|Turns|Lanes|Pace|Waiters)\b/,
  ]
    .map(({ source }) => source)
    .join("|"),
);
const RETIRED_FILES = /(?:^|[/-])(?:known|turns|lanes|pace|waiters|waiting)[-.]/;

/** What was deleted because it cost more than it gave. */
const DELETED: readonly RegExp[] = [
  /reused-memory|gathered-body|known-places|mail-by-ref|plain-delivery|tick-shape|json-member\b/,
  /\b(?:BatchWire|mailJson|messageJson|RecurringData)\b/,
  // As a result; a field may hold a promise that is under way.
  /\)(?: =>|:) Promise<.*> \| undefined\b/,
];

describe("the vocabulary", () => {
  const checked = new Map([...texts].filter(([path]) => !NOT_CHECKED.test(path)));

  for (const [words, instead] of Object.entries(RETIRED)) {
    it(`has retired ${words.replaceAll("?:", "")}: say ${instead}`, () => {
      const pattern = new RegExp(`\\b(?:${words})\\b`, "i");
      assertNone(
        [...checked].flatMap(([path, text]) => [
          ...(pattern.test(wordsOf(withoutExempt(path, path))) ? [at(path, 0, "is so named", path)] : []),
          ...text
            .split("\n")
            .flatMap((line, index) =>
              pattern.test(wordsOf(withoutExempt(path, line)))
                ? [at(path, index + 1, `has "${words}"`, line)]
                : [],
            ),
        ]),
      );
    });
  }

  it("calls mechanisms by their standard names: mutex, semaphore, cache, rate limiter, queue", () => {
    const code = new Map([...checked].filter(([path]) => /\.[jt]s$/.test(path)));
    assertNowhere(RETIRED_NAMES, "a retired name", code);
    assertNone([...code.keys()].filter((path) => RETIRED_FILES.test(path)));
  });

  it("has no name of deleted tuning", () => {
    for (const pattern of DELETED) {
      assertNowhere(pattern, `a deleted name (${pattern.source})`, sources);
      assertNone([...sources.keys()].filter((path) => pattern.test(path)));
    }
  });
});

function withoutExempt(path: string, line: string): string {
  const allowed = EXEMPT.filter((exemption) => exemption.in === undefined || exemption.in.test(path));
  return allowed.reduce((rest, { pattern }) => rest.replaceAll(pattern, "…"), line);
}

/** Cuts identifiers into their words. */
function wordsOf(line: string): string {
  return line
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .replaceAll("_", " ");
}
