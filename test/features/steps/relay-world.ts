import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type LeaseResponse,
  type MailboxItem,
  type Receipt,
  RelayClient,
  RelayError,
} from "@a2a-relay/client";
import { After, Before, setDefaultTimeout, setWorldConstructor, World } from "@cucumber/cucumber";
import { loadConfig, type RunningRelay, startRelay } from "a2a-relay";
import { type ChildRelay, startChildRelay } from "../../support/child-relay.ts";
import { A2aScene } from "./a2a-scene.ts";
import { DeliveryScene } from "./delivery-scene.ts";

export type LeasedMessage = LeaseResponse["messages"][number];

/** Long enough for a busy machine; a relay that works answers at once. */
export const PATIENCE_MS = 10_000;

setDefaultTimeout(60_000);

/** What one scenario knows. "The message" is the last one sent, "it" in "it finds" is the last reader. */
export class RelayWorld extends World {
  ownProcess = false;
  /** Further settings of the relay, and the operator's key where it asks for keys. */
  readonly flags: Record<string, string> = {};
  operatorKey: string | undefined;
  /** The key of each agent, by its short name. */
  readonly keys = new Map<string, string>();
  refusal: RelayError | undefined;
  found: readonly MailboxItem[] = [];
  named: readonly string[] = [];
  queued:
    | { readonly id: string; readonly intent_text: string; readonly sender: { readonly display: string } }
    | undefined;
  /** What each worker holds. */
  readonly held = new Map<string, LeasedMessage>();
  readonly receipts: Receipt[] = [];
  readonly delivery = new DeliveryScene();
  readonly a2a = new A2aScene();
  readonly #parts = new AsyncDisposableStack();
  #directory: string | undefined;
  #child: ChildRelay | undefined;
  #relay: RunningRelay | undefined;
  #client: RelayClient | undefined;
  #aheadMs = 0;

  get client(): RelayClient {
    assert.ok(this.#client, "no relay was started");
    return this.#client;
  }

  /** The receipt of the message that the scenario is about. */
  get receipt(): Receipt {
    const receipt = this.receipts.at(-1);
    assert.ok(receipt, "no message was sent");
    return receipt;
  }

  get taskId(): string {
    const { task_id: taskId } = this.receipt;
    assert.ok(taskId, "the message asked for nothing");
    return taskId;
  }

  /** Starts a relay on a free port; started again, it goes on with the data it had. */
  async start(): Promise<void> {
    this.#directory ??= await mkdtemp(join(tmpdir(), "a2a-relay-feature-"));
    const url = this.ownProcess
      ? await this.#startProcess(this.#directory)
      : await this.#startHere(this.#directory);
    this.#client = this.clientWith(this.operatorKey, url);
  }

  /** A client of the relay with this key. */
  clientWith(apiKey: string | undefined, url = this.client.url): RelayClient {
    return new RelayClient({ url, apiKey });
  }

  clientOf(name: string): RelayClient {
    const key = this.keys.get(name);
    assert.ok(key, `${name} has no key`);
    return this.clientWith(key);
  }

  /** Stops the relay and starts it with the settings as they are now. */
  async restart(): Promise<void> {
    await this.#relay?.[Symbol.asyncDispose]();
    await this.start();
  }

  async kill(): Promise<void> {
    assert.ok(this.#child, "only a relay in its own process can be killed");
    await this.#child.kill("SIGKILL");
  }

  /** Moves the relay's clock, so that a scenario need not wait for days. */
  letPass(durationMs: number): void {
    this.#aheadMs += durationMs;
  }

  /** Ends it with the scenario, before the relay. */
  use<Part extends AsyncDisposable>(part: Part): Part {
    return this.#parts.use(part);
  }

  /** For acts that the relay is expected to refuse. */
  async attempt(act: () => Promise<unknown>): Promise<void> {
    this.refusal = undefined;
    try {
      await act();
    } catch (reason) {
      assert.ok(reason instanceof RelayError, `not refused but broken: ${String(reason)}`);
      this.refusal = reason;
    }
  }

  async end(): Promise<void> {
    await this.#parts.disposeAsync();
    if (this.#directory !== undefined) await rm(this.#directory, { recursive: true, force: true });
  }

  async #startHere(dataDirectory: string): Promise<string> {
    const flags = {
      port: "0",
      data: dataDirectory,
      "sweep-interval-ms": "10",
      "log-level": "silent",
      ...this.flags,
    };
    const env = this.operatorKey === undefined ? {} : { A2A_RELAY_API_KEY: this.operatorKey };
    const clock = { nowMs: () => Date.now() + this.#aheadMs, nextTurn: () => nextTurn() };
    this.#relay = await startRelay(loadConfig({ flags, env, dotenv: {} }), { clock });
    return this.#parts.use(this.#relay).url;
  }

  async #startProcess(dataDirectory: string): Promise<string> {
    this.#child = this.#parts.use(await startChildRelay({ dataDirectory }));
    return this.#child.url;
  }
}

setWorldConstructor(RelayWorld);

Before({ tags: "@own-process" }, function (this: RelayWorld) {
  this.ownProcess = true;
});

After(async function (this: RelayWorld) {
  await this.end();
});
