import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { delimiter, join } from "node:path";
import { describe, it } from "node:test";
import { type Block, blocksIn, patternOf, ROOT, TemporaryFolder, Terminal } from "./support/reader.ts";

/**
 * Follows docs/guides/a2a-in-five-minutes.md as a reader would who has the packages installed. `serve` and each program
 * have their own terminal, all other commands are typed into one shell, block by block. A `text` block is what the
 * command before it prints, or what the program has printed by then whose name stands behind `text`.
 */

const GUIDE = readFileSync(join(ROOT, "docs", "guides", "a2a-in-five-minutes.md"), "utf8");
const LISTENING = /listening\s+(\S+)\n[\s\S]*docs\s+\S+\n/;
/** Where the guide's own receiver listens. */
const BELL_PORT = "3000";

describe("the guide to A2A in five minutes", () => {
  it("can be followed from the first command to the last, and shows what they print", async () => {
    await using reader = await Reader.sitDown();
    for (const block of blocksIn(GUIDE)) await reader.follow(block);
    assert.deepEqual(reader.saved, ["call.ts", "teller.ts", "executor.ts", "bell.ts"]);
  });
});

class Reader implements AsyncDisposable {
  readonly saved: string[] = [];
  readonly #folder: TemporaryFolder;
  readonly #terminals = new Map<string, Terminal>();
  readonly #bellPort: string;
  #url = "";
  #printed: string | undefined;

  private constructor(folder: TemporaryFolder, bellPort: string) {
    this.#folder = folder;
    this.#bellPort = bellPort;
  }

  static async sitDown(): Promise<Reader> {
    return new Reader(await TemporaryFolder.create(), await freePort());
  }

  async follow({ language, about, text: written }: Block): Promise<void> {
    const text = this.#here(written);
    if (language === "ts") {
      await this.#folder.write(about, text);
      this.saved.push(about);
    } else if (language === "text") {
      await this.#compare(about, text);
    } else if (text.startsWith("a2a-relay serve")) {
      await this.#serve(text);
    } else if (language === "sh") {
      await this.#type(text);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const terminal of this.#terminals.values()) await terminal[Symbol.asyncDispose]();
    await this.#folder[Symbol.asyncDispose]();
  }

  /** Again at the same address, where there was one before. */
  async #serve(command: string): Promise<void> {
    await this.#terminals.get("relay")?.[Symbol.asyncDispose]();
    const port = this.#url === "" ? "0" : new URL(this.#url).port;
    const relay = this.#open("relay", command, { PORT: port });
    this.#url = LISTENING.exec(await relay.said(LISTENING))?.[1] ?? "";
  }

  async #type(text: string): Promise<void> {
    const program = /^node (\S+\.ts)$/.exec(text)?.[1];
    if (program !== undefined) {
      this.#printed = undefined;
      this.#open(program, text);
      return;
    }
    const shell = this.#terminals.get("shell") ?? this.#open("shell", "sh");
    this.#printed = await shell.run(text);
  }

  async #compare(program: string, text: string): Promise<void> {
    const pattern = patternOf(text, { whole: true });
    if (program === "") assert.match(this.#printed ?? "", pattern);
    else await this.#terminals.get(program)?.said(pattern);
  }

  #open(name: string, command: string, more: Readonly<Record<string, string>> = {}): Terminal {
    const { path: home } = this.#folder;
    const env = {
      HOME: home,
      A2A_RELAY_DATA: join(home, "data"),
      // As if the packages were installed, and yet from the sources.
      NODE_OPTIONS: "--conditions=source",
      PATH: [join(ROOT, "node_modules", ".bin"), process.env["PATH"] ?? ""].join(delimiter),
      ...(this.#url === "" ? {} : { A2A_RELAY_URL: this.#url }),
      ...more,
    };
    const terminal = new Terminal(command, env, home);
    this.#terminals.set(name, terminal);
    return terminal;
  }

  #here(text: string): string {
    return text.replaceAll("http://127.0.0.1:8080", this.#url).replaceAll(BELL_PORT, this.#bellPort);
  }
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return String(port);
}
