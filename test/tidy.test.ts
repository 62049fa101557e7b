import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { describe, it } from "node:test";
import { LIMITS, RELAY_ERROR_CODES } from "@a2a-relay/protocol";
import { assertNowhere, files, LINE_CHARS_MAX, read, ROOT, texts } from "./support/tree.ts";
import { HTTP_STATUS } from "../packages/relay/src/transports/http/http-error.ts";

const DECISION_LINES_MAX = 80;

/** Spelled with gaps, so that this file passes its own test. */
const UNFINISHED = new RegExp(`\\b(?:${"TO_DO|FIX_ME|XX_X|HA_CK".replaceAll("_", "")})\\b`);

/** A path of one developer's machine. */
const MACHINE_PATH = /(?<![\w.~-])(?:\/(?:home|Users)\/\w|\/(?:root|work)\/|[A-Z]:\\Users\\)/;

const EMPTY_NAME = /(?:^|[-_./])(?:utils?|common|helpers?|managers?)(?:[-_./]|$)/i;

describe("every file", () => {
  it("is UTF-8 without a byte order mark", () => {
    for (const path of texts.keys()) {
      const bytes = readFileSync(join(ROOT, path));
      assert.doesNotThrow(
        () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
        `${path} is not UTF-8`,
      );
      assert.notEqual(bytes.subarray(0, 3).toString("hex"), "efbbbf", `${path} has a byte order mark`);
    }
  });

  it("ends its lines with LF and no blanks, and itself with one of them", () => {
    assertNowhere(/\r/, "a carriage return");
    assertNowhere(/[ \t]$/, "blanks at its end");
    const ragged = [...texts].filter(([, text]) => !/(?:^|[^\n]\n)$/.test(text)).map(([path]) => path);
    assert.deepEqual(ragged, []);
  });

  it("is finished: nothing in it waits for later", () => {
    assertNowhere(UNFINISHED, "a note that something is unfinished");
  });

  it("knows nothing of the machine it was written on", () => {
    assertNowhere(MACHINE_PATH, "a path of one machine");
  });

  it("is named for what it is", () => {
    for (const path of files) assert.doesNotMatch(path, EMPTY_NAME, `${path} has a name that says nothing`);
  });
});

describe("every source", () => {
  const code = new Map([...texts].filter(([path]) => /\.(?:ts|js|sql)$/.test(path)));

  it(`has lines of at most ${LINE_CHARS_MAX} characters, but for a text that stands alone on its line`, () => {
    // A sentence that is cut in two cannot be searched for.
    const text = /^ *(?:const \w+ = )?(?:["'`]|\/(?![/*])).*["'`/][a-z]*[,;)]*$/gm;
    const short = new Map([...code].map(([path, all]) => [path, all.replaceAll(text, "")]));
    assertNowhere(new RegExp(`^.{${LINE_CHARS_MAX + 1}}`, "u"), "a line that is too long", short);
  });

  it("leaves no test running alone", () => {
    assertNowhere(
      /\b(?:describe|it|suite|test)\.only\(|\bonly: true\b/,
      "a test that silences the others",
      code,
    );
  });
});

describe("the packages", () => {
  const manifests = files.filter((path) => basename(path) === "package.json").map(readManifest);
  const version = manifests.find(({ path }) => path === "package.json")?.version ?? "";

  it("all have the same version, also where they depend on each other", () => {
    for (const manifest of manifests) {
      assert.equal(manifest.version, version, manifest.path);
      for (const { name } of manifests) {
        const wanted = manifest.dependencies?.[name];
        if (wanted !== undefined) assert.equal(wanted, version, `${manifest.path} depends on ${name}`);
      }
    }
  });

  it("pin what they depend on, so that two installations are the same", () => {
    for (const { path, dependencies = {}, devDependencies = {} } of manifests) {
      for (const [name, wanted] of Object.entries({ ...dependencies, ...devDependencies })) {
        assert.match(wanted, /^\d+\.\d+\.\d+/, `${path}: ${name}`);
      }
    }
  });

  it("have an entry in the change log", () => {
    const headings = [...read("CHANGELOG.md").matchAll(/^## \[(.+?)\]/gm)].map((match) => match[1]);
    assert.ok(
      headings.includes("Unreleased") || headings.includes(version),
      `${version} is not in CHANGELOG.md`,
    );
  });
});

describe("the documentation", () => {
  const pages = new Map([...texts].filter(([path]) => extname(path) === ".md"));

  it("has no link that leads nowhere", () => {
    for (const [path, text] of pages) {
      for (const target of linksIn(text)) {
        const [file = "", anchor] = target.split("#");
        const page = file === "" ? path : join(dirname(path), decodeURIComponent(file));
        assert.ok(existsSync(join(ROOT, page)), `${path} links to ${target}`);
        if (anchor !== undefined && extname(page) === ".md") {
          assert.ok(
            anchorsIn(read(page)).includes(anchor),
            `${path} links to ${target}, which has no such heading`,
          );
        }
      }
    }
  });

  it("numbers its decisions without a gap and keeps each short", () => {
    const decisions = [...pages].filter(([path]) => dirname(path) === "docs/decisions");
    for (const [index, [path, text]] of decisions.entries()) {
      const number = index + 1;
      assert.match(basename(path), new RegExp(`^${String(number).padStart(4, "0")}-[a-z0-9-]+\\.md$`), path);
      assert.ok(text.startsWith(`# ${number}. `), `${path} does not start with "# ${number}. "`);
      assert.ok(
        text.split("\n").length <= DECISION_LINES_MAX,
        `${path} has over ${DECISION_LINES_MAX} lines`,
      );
    }
  });

  it("lists every error code with its HTTP status, and none that does not exist", () => {
    const listed = tableIn("docs/reference/errors.md").map(([code, status]) => [code, Number(status)]);
    assert.deepEqual(
      listed,
      RELAY_ERROR_CODES.map((code) => [code, HTTP_STATUS[code]]),
    );
  });

  it("lists every limit with its value, and none that does not exist", () => {
    const rows = tableIn("docs/reference/limits.md");
    const listed = rows.map(([name, value]) => [name, Number(value?.replaceAll(",", ""))]);
    assert.deepEqual(Object.fromEntries(listed), LIMITS);
    assert.equal(new Set(listed.map(([name]) => name)).size, listed.length, "a limit is listed twice");
  });
});

interface Manifest {
  readonly path: string;
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

function readManifest(path: string): Manifest {
  return { ...(JSON.parse(read(path)) as Omit<Manifest, "path">), path };
}

/** Links to files and headings of this project; code samples are not links. */
function linksIn(text: string): readonly string[] {
  const prose = text.replaceAll(/^```.*?^```$/gms, "").replaceAll(/`[^`\n]*`/g, "");
  const targets = [...prose.matchAll(/\]\(([^()\s]+)\)/g)].map((match) => match[1] ?? "");
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

/** Headings as GitHub turns them into anchors. */
function anchorsIn(text: string): readonly string[] {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map((match) => match[1] ?? "");
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(/\s/g, "-"),
  );
}

/** The first two columns of every row whose first is a word in code. */
function tableIn(path: string): readonly (readonly [first: string, second: string])[] {
  const rows = read(path).matchAll(/^\| `(\w+)` *\| *([^|]*?) *\|/gm);
  return [...rows].map((match) => [match[1] ?? "", match[2] ?? ""]);
}
