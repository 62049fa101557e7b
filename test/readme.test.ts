import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { type Block, blocksIn, patternOf, ROOT, TemporaryFolder, Terminal } from "./support/reader.ts";

/**
 * Follows the README as a reader would, with one terminal for the relay, one for the commands and one for the
 * program: every `sh` block of "Try it" is run unchanged, in order, in one shell, and must print what the
 * `text` block after it shows. Only the port and the data directory differ, through the environment.
 */

const README = readFileSync(join(ROOT, "README.md"), "utf8");
/** How it tells the reader to start the program, whose file the test keeps out of the checkout. */
const PROGRAM_COMMAND = /`(npx node .*) echo\.ts`/.exec(README)?.[1] ?? "";

describe("the README", () => {
  const start = blocksOf("Start");
  const tour = blocksOf("Try it");

  it("starts the relay in two commands", () => {
    // `npm ci` is not run again: it brought the Node that runs this test, and would take it away first.
    assert.deepEqual(start[0]?.text.split("\n"), ["npm ci", "npm start"]);
    assert.equal(start[1]?.language, "text");
  });

  it("and the guides show programs that the compiler accepts", async () => {
    await using folder = await TemporaryFolder.create();
    const guides = globSync("docs/guides/*.md", { cwd: ROOT }).map((path) =>
      readFileSync(join(ROOT, path), "utf8"),
    );
    const programs = [README, ...guides].flatMap(blocksIn).filter(({ language }) => language === "ts");
    assert.ok(programs.length > 1);
    for (const [index, { text }] of programs.entries()) await folder.write(`${index}.ts`, text);
    const config = { extends: join(ROOT, "tsconfig.json"), include: ["*.ts"] };
    const project = await folder.write("tsconfig.json", JSON.stringify(config));
    await promisify(execFile)(join(ROOT, "node_modules", ".bin", "tsc"), ["--project", project]);
  });

  it("can be followed from the first command to the last, and shows what they print", async () => {
    await using folder = await TemporaryFolder.create();
    const data = join(folder.path, "data");
    const home = { HOME: folder.path, A2A_RELAY_DATA: data };
    await using terminals = new AsyncDisposableStack();
    const relay = terminals.use(new Terminal("npm start", { ...home, PORT: "0" }));
    const url = /listening\s+(\S+)/.exec(await relay.said(/listening\s+\S+\n[\s\S]*docs\s+\S+\n/))?.[1] ?? "";
    const here = { ...home, A2A_RELAY_URL: url };
    const shown = (text: string): string =>
      text.replaceAll("http://127.0.0.1:8080", url).replaceAll("~/.a2a-relay", data);
    assert.match(relay.output, patternOf(shown(start[1]?.text ?? "")));

    const shell = terminals.use(new Terminal("sh", here));
    for (const [index, { language, text }] of tour.entries()) {
      if (language === "ts") {
        const path = await folder.write("echo.ts", text);
        const program = terminals.use(new Terminal(`${PROGRAM_COMMAND} ${path}`, here));
        await program.said(/^echo@me takes tasks\n$/);
      }
      if (language !== "sh") continue;
      const printed = await shell.run(text);
      const next = tour[index + 1];
      if (next?.language === "text")
        assert.match(printed, patternOf(shown(next.text), { whole: true }), text);
    }
  });
});

function blocksOf(heading: string): readonly Block[] {
  const section = README.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  return blocksIn(section);
}
