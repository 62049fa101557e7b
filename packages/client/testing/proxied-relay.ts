import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { loadConfig } from "../../relay/src/config/load-config.ts";
import { type RunningRelay, startRelay } from "../../relay/src/server/start-relay.ts";
import { RelayClient } from "../src/client/relay-client.ts";

type Environment = Readonly<Record<string, string>>;

/** What the proxy does with sockets and streams: passes them, refuses them, or buffers them. */
export type ProxyHabit = "pass" | "refuse" | "hold";

/** A real relay behind a faulty proxy, which keeps its address when the relay restarts. */
export class ProxiedRelay {
  sockets: ProxyHabit = "pass";
  streams: ProxyHabit = "pass";
  /** Breaks the connection over which the relay next answers a lease, and the answer is lost. */
  losesLease = false;
  /** Breaks the connection of each request that fits, before the relay hears of it. */
  drops: (line: string) => boolean = () => false;
  /** What came so far, such as `GET /health` or `upgrade /mailbox/a/ws`, and `answered GET /health`, oldest first. */
  readonly seen: string[] = [];
  readonly #directory: string;
  readonly #env: Environment;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  readonly #streaming = new Set<ServerResponse>();
  readonly #watchers = new Set<() => void>();
  #relay: RunningRelay | undefined;

  private constructor(directory: string, env: Environment) {
    this.#directory = directory;
    this.#env = env;
    this.#server = createServer((incoming, response) => this.#forward(incoming, response));
    this.#server.on("upgrade", (incoming, socket) => this.#upgrade(incoming, socket));
    this.#server.on("connection", (socket) => {
      this.#open.add(socket);
      socket.once("close", () => this.#open.delete(socket));
    });
  }

  static async start(env: Environment = {}): Promise<ProxiedRelay> {
    const proxied = new ProxiedRelay(mkdtempSync(join(tmpdir(), "a2a-proxied-")), env);
    await proxied.startRelay();
    await new Promise<void>((resolve) => {
      proxied.#server.listen(0, "127.0.0.1", resolve);
    });
    return proxied;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Calls the relay without the proxy. */
  get direct(): RelayClient {
    return new RelayClient({ url: this.#relay?.url ?? "", apiKey: this.#env["A2A_RELAY_API_KEY"] });
  }

  /** With its data, at another port. */
  async startRelay(): Promise<void> {
    this.#relay = await startRelay(configIn(this.#directory, this.#env));
  }

  async stopRelay(): Promise<void> {
    await this.#relay?.[Symbol.asyncDispose]();
    this.#relay = undefined;
  }

  /** Breaks every connection that is open now. */
  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** Ends every stream that is open now in an orderly way. */
  endStreams(): void {
    for (const response of this.#streaming) response.end();
  }

  /** Resolves once so many requests came that fit. */
  async came(fits: (line: string) => boolean, count = 1): Promise<void> {
    while (this.seen.filter(fits).length < count) {
      await new Promise<void>((resolve) => {
        this.#watchers.add(resolve);
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#server.close();
    await this.stopRelay();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #loses(chunk: Buffer): boolean {
    if (!this.losesLease || !chunk.includes('"lease":{')) return false;
    this.losesLease = false;
    return true;
  }

  #note(line: string): void {
    this.seen.push(line);
    for (const wake of this.#watchers) wake();
    this.#watchers.clear();
  }

  #forward(incoming: IncomingMessage, response: ServerResponse): void {
    const line = `${incoming.method} ${pathOf(incoming)}`;
    this.#note(line);
    if (this.drops(line)) {
      response.destroy();
      return;
    }
    const isStream = incoming.headers.accept === "text/event-stream";
    if (isStream && this.streams === "refuse") {
      response.writeHead(404, { "content-type": "text/html" }).end("<html>Not here");
      return;
    }
    const forwarded = this.#requestOf(incoming);
    forwarded.once("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      // A proxy that buffers whole answers never passes on an endless one.
      if (isStream && this.streams === "hold") answer.resume();
      else {
        answer.on("data", (chunk: Buffer) => {
          if (this.#loses(chunk)) response.destroy();
          else if (!response.writableEnded) response.write(chunk);
        });
        answer.once("end", () => {
          response.end();
          this.#note(`answered ${line}`);
        });
      }
      answer.once("close", () => answer.complete || response.destroy());
    });
    forwarded.once("error", () => response.destroy());
    if (isStream) this.#streaming.add(response);
    response.once("close", () => {
      this.#streaming.delete(response);
      forwarded.destroy();
    });
    incoming.pipe(forwarded);
  }

  #upgrade(incoming: IncomingMessage, socket: Duplex): void {
    this.#note(`upgrade ${pathOf(incoming)}`);
    socket.on("error", () => socket.destroy());
    if (this.sockets === "hold") return;
    if (this.sockets === "refuse") {
      socket.end("HTTP/1.1 426 Upgrade Required\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const forwarded = this.#requestOf(incoming);
    socket.once("close", () => forwarded.destroy());
    forwarded.once("upgrade", (answer, upstream, head) => {
      const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
      socket.write(head);
      upstream.on("error", () => socket.destroy());
      upstream.once("close", () => socket.destroy());
      socket.once("close", () => upstream.destroy());
      if (socket.destroyed) upstream.destroy();
      socket.pipe(upstream);
      upstream.on("data", (chunk: Buffer) => {
        if (this.#loses(chunk)) socket.destroy();
        else socket.write(chunk);
      });
    });
    forwarded.once("response", (answer) => {
      answer.resume();
      socket.end(`HTTP/1.1 ${answer.statusCode} No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    });
    forwarded.once("error", () => socket.destroy());
    forwarded.end();
  }

  #requestOf({ method, url, headers }: IncomingMessage): ReturnType<typeof request> {
    const { port } = new URL(this.#relay?.url ?? "http://127.0.0.1:1");
    const { host: _, ...rest } = headers;
    return request({ host: "127.0.0.1", port, method, path: url, headers: rest, agent: false });
  }
}

function pathOf({ url = "/" }: IncomingMessage): string {
  return new URL(url, "http://localhost").pathname;
}

function configIn(directory: string, settings: Environment): ReturnType<typeof loadConfig> {
  const env = {
    PORT: "0",
    A2A_RELAY_DATA: directory,
    A2A_RELAY_LOG_LEVEL: "silent",
    A2A_RELAY_SWEEP_INTERVAL_MS: "20",
    A2A_RELAY_DRAIN_MS: "50",
    A2A_RELAY_STREAM_STALL_MS: "1000",
    ...settings,
  };
  return loadConfig({ env, flags: {}, dotenv: {} });
}
