import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { a2aEndpoints, operations, operationsIn } from "@a2a-relay/protocol";
import { assertNone, lineOf, sources } from "./support/tree.ts";

/** Only the operation table writes the path of a route. */

const TABLE = "packages/protocol/src/operations/";

const ALL = [...operationsIn(operations), ...operationsIn(a2aEndpoints)];
const PATHS = ALL.map(({ path }) => path.split("/").slice(1)).filter(([first]) => first !== "");

describe("the path of a route", () => {
  it("stands in the operation table alone, not as a text or a list of segments in another source", () => {
    const others = [...sources].filter(([path]) => !path.startsWith(TABLE));
    assertNone(others.flatMap(([path, text]) => routesIn(text).map((found) => `${path}:${found}`)));
  });

  it("is found however it is written", () => {
    const written = [
      'get("/agents")',
      "get(`/mailbox/${agentId}/lease?max=${max}`)",
      "fetch(`${url}/tasks/${task.id}/events`)",
      "fetch(relay.url + '/health')",
      'fetch(relay.url + "/agents/" + id)',
      'fetch("/t/" + tenant + "/keys/".concat(id))',
      'const path = "/messages/:id";',
      'path: "/t/{tenant}/keys/{id}/rotate"',
      'this.#get(["agents", id, "push"], query)',
      'this.#get(["threads"], query)',
    ];
    for (const line of written) assert.equal(routesIn(line).length, 1, line);
    const harmless = [
      "// GET /agents lists all",
      '"GET /agents lists all"',
      '"/list/agents"',
      'const KINDS = ["message", "task"];',
      'import { agents } from "../agents/agents.ts";',
      'path.startsWith("/a2a/")',
    ];
    for (const line of harmless) assert.deepEqual(routesIn(line), [], line);
  });

  it("belongs to one operation", () => {
    const routes = ALL.map(({ method, path }) => `${method} ${path}`);
    assert.equal(new Set(routes).size, routes.length);
  });
});

/** `line: path` of every route in a source. */
function routesIn(text: string): readonly string[] {
  // Comments may name routes.
  const source = text.replaceAll(/\/\*.*?\*\/|(?<=^|\s)\/\/[^\n]*/gms, (comment) =>
    comment.replaceAll(/[^\n]/g, " "),
  );
  const texts = [
    ...source.matchAll(/(?:["'`]|\$\{[^{}]*\})((?:\/(?:\$\{[^{}]*\}|[\w.:{}@-])+)+\/?)(?:\?[^"'`]*)?["'`]/g),
  ];
  const lists = [...source.matchAll(/\[((?:"[\w.-]+"|[\w.]+)(?:, (?:"[\w.-]+"|[\w.]+))*)\]/g)];
  const found = [
    ...texts.map((match) => ({ match, segments: (match[1] ?? "").slice(1).split("/").map(segmentOfText) })),
    ...lists
      .filter((match) => !/[\w\])]$/.test(source.slice(0, match.index)))
      .map((match) => ({ match, segments: (match[1] ?? "").split(", ").map(segmentOfList) })),
  ];
  return found
    .filter(({ segments }) => isRoute(segments))
    .map(({ match, segments }) => `${lineOf(source, match.index)} /${segments.join("/")}`);
}

const PARAM = "{}";

/** Behind a slash at the end of a text, a parameter is added to it. */
function segmentOfText(segment: string): string {
  return /^(?:\$?\{.*\}|:\w+|)$/.test(segment) ? PARAM : segment;
}

function segmentOfList(item: string): string {
  return item.startsWith('"') ? item.slice(1, -1) : PARAM;
}

function isRoute(segments: readonly string[]): boolean {
  const [first, , ...rest] = segments;
  const own = first === "t" && rest.length > 0 ? rest : segments;
  return PATHS.some(
    (path) =>
      path.length === own.length &&
      path.every((segment, index) => (segment.startsWith("{") ? PARAM : segment) === own[index]),
  );
}
