import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { delimiter, join } from "node:path";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { startPostgres, type TestServer } from "../packages/relay/testing/postgres-server.ts";
import { type Block, blocksIn, patternOf, ROOT, TemporaryFolder, Terminal } from "./support/reader.ts";

/**
 * Follows docs/guides/scale-out.md as far as that needs no more than a PostgreSQL server: its SQL, and the commands of
 * "Try it". The role and the database have a name of their own here, and the relays their own ports.
 */

const GUIDE = readFileSync(join(ROOT, "docs", "guides", "scale-out.md"), "utf8");
const NAME = `guide_${process.pid}`;
const GUIDE_URL = "postgres://relay:change-me@127.0.0.1:5432/relay";
const GUIDE_PORTS = ["8081", "8082"];
const LISTENING = /listening\s+(\S+)\n[\s\S]*docs\s+\S+\n/;
const STATEMENT = /[^;]+;/g;

function sectionOf(title: string): readonly Block[] {
  const section = GUIDE.split(/^## /m).find((text) => text.startsWith(`${title}\n`));
  assert.ok(section !== undefined, `the guide has a section ${title}`);
  return blocksIn(section);
}

function textOf(title: string, language: string, words: string): string {
  const found = sectionOf(title).filter((block) => block.language === language && block.text.includes(words));
  assert.equal(found.length, 1, `blocks of ${language} with ${words} in ${title}`);
  return found[0]?.text ?? "";
}

let server: TestServer;
let folder: TemporaryFolder;
let databaseUrl = "";
let ports: readonly string[] = [];
const terminals: Terminal[] = [];

before(async () => {
  server = await startPostgres();
  folder = await TemporaryFolder.create();
  ports = await Promise.all(GUIDE_PORTS.map(freePort));
  const url = new URL(server.url);
  [url.username, url.password, url.pathname] = [NAME, "change-me", NAME];
  databaseUrl = url.href;
});

after(async () => {
  for (const terminal of terminals) await terminal[Symbol.asyncDispose]();
  await runSql(server.url, `drop database if exists ${NAME} with (force); drop role if exists ${NAME};`);
  await folder[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

describe("the guide to several relays on one database", () => {
  it("makes a database on which a message sent at one relay is read at the other", async () => {
    await runSql(server.url, here(textOf("Try it", "sql", "create database")));
    const shell = open("sh");
    let printed = "";
    for (const { language, text } of sectionOf("Try it")) {
      if (language === "text") assert.match(printed, patternOf(text));
      else if (text.startsWith("a2a-relay serve")) await open(here(text)).said(LISTENING);
      else if (language === "sh") printed = await shell.run(here(text));
    }
  });

  it("moves the data of a relay on SQLite into an empty database", async () => {
    const old = open("a2a-relay serve --port 0 --data ./old-relay");
    const url = LISTENING.exec(await old.said(LISTENING))?.[1] ?? "";
    const shell = open("sh");
    for (const id of ["lulu@laptop", "zhiwei@studio"]) {
      await shell.run(`a2a-relay agents register --id ${id} --relay ${url}`);
    }
    await shell.run(`a2a-relay send --from lulu@laptop --to zhiwei@studio --body "你好" --relay ${url}`);
    await old[Symbol.asyncDispose]();
    const empty = await server.newDatabase();
    let printed = "";
    for (const { language, text } of sectionOf("Move from SQLite")) {
      if (language === "sh") printed = await shell.run(text.replaceAll(GUIDE_URL, `'${empty}'`));
      else assert.match(printed, patternOf(text));
    }
    const relay = open(
      `a2a-relay serve --port 0 --database '${empty}' --data ./moved --anchor-dir ./old-relay/anchors`,
    );
    const moved = LISTENING.exec(await relay.said(LISTENING))?.[1] ?? "";
    assert.match(await shell.run(`a2a-relay poll --agent zhiwei@studio --ack --relay ${moved}`), /你好/);
    assert.match(await shell.run(`a2a-relay audit verify --relay ${moved}`), /is unbroken/);
  });

  it("gives the tables and the role settings that the server takes", async () => {
    const admin = new URL(server.url);
    admin.pathname = NAME;
    await runSql(admin.href, "drop role if exists a2a_relay_tenant;");
    await runSql(admin.href, here(textOf("Tenants kept apart by the database", "sql", "nologin")));
    await runSql(admin.href, here(textOf("Connections and pooling", "sql", "statement_timeout")));
    const figures = await runSql(admin.href, textOf("Watch it", "sql", "pg_stat_activity"));
    assert.deepEqual(
      figures.map((rows) => rows.length),
      [1, 5],
    );
  });

  it("lets a relay work behind a pooler that drops the settings it sends", async () => {
    await runSql(server.url, here(textOf("Connections and pooling", "sql", "search_path")));
    // Options in the URL replace those of the relay, as a pooler that ignores them would.
    const pooled = `${databaseUrl}?options=${encodeURIComponent("-c application_name=pooled")}`;
    const relay = open(`a2a-relay serve --port 0 --database '${pooled}' --data ./relay-3`);
    const url = LISTENING.exec(await relay.said(LISTENING))?.[1] ?? "";
    const agents = await open("sh").run(`a2a-relay agents list --relay ${url}`);
    assert.match(agents, /zhiwei@studio/);
  });

  it("configures nginx with every directive that streams and sockets need", (context) => {
    const config = textOf("Three relays behind nginx", "nginx", "upstream");
    for (const directive of [
      /^map \$http_upgrade \$connection_upgrade \{$/m,
      /proxy_http_version 1\.1;/,
      /proxy_set_header Host \$host;/,
      /proxy_set_header Upgrade \$http_upgrade;/,
      /proxy_set_header Connection \$connection_upgrade;/,
      /proxy_buffering off;/,
      /proxy_read_timeout (?:[7-9]\d|\d{3,})s;/,
      /client_max_body_size 17m;/,
    ]) {
      assert.match(config, directive);
    }
    const upstreams = [...config.matchAll(/^ {2}server \S+:8080;$/gm)];
    assert.equal(upstreams.length, 3);
    assert.ok(config.includes("proxy_pass http://a2a_relays;"));
    if (spawnSync("nginx", ["-v"]).status !== 0)
      context.diagnostic("there is no nginx here to read the file");
  });

  it("counts the connections of all relays as the relays open them", () => {
    const sums = [...GUIDE.matchAll(/(\d+) × \((\d+) \+ 1\)[ |=]+(\d+)/g)];
    assert.equal(sums.length, 3);
    for (const [, relays, pool, sum] of sums) {
      assert.equal(Number(relays) * (Number(pool) + 1), Number(sum));
    }
  });
});

function here(text: string): string {
  let own = text.replaceAll(GUIDE_URL, `'${databaseUrl}'`);
  for (const [index, port] of GUIDE_PORTS.entries()) own = own.replaceAll(port, ports[index] ?? "");
  return own.replaceAll(/(?<=role |database |owner |tenant to )relay\b/g, NAME);
}

/** One by one, because a database cannot be created in a transaction. */
async function runSql(url: string, text: string): Promise<readonly (readonly unknown[])[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const answers: (readonly unknown[])[] = [];
    for (const [statement] of text.matchAll(STATEMENT)) answers.push((await client.query(statement)).rows);
    return answers;
  } finally {
    await client.end();
  }
}

function open(command: string): Terminal {
  const env = {
    HOME: folder.path,
    // As if the packages were installed, and yet from the sources.
    NODE_OPTIONS: "--conditions=source",
    PATH: [join(ROOT, "node_modules", ".bin"), process.env["PATH"] ?? ""].join(delimiter),
  };
  const terminal = new Terminal(command, env, folder.path);
  terminals.push(terminal);
  return terminal;
}

async function freePort(): Promise<string> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, "close");
  return String(port);
}
