import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RelayError } from "@a2a-relay/protocol";
import fc from "fast-check";
import { type CoreOnMemory, coreOnMemory, LULU, ZHIWEI } from "../../testing/core-on-memory.ts";
import { anOkResult, aSharedTask } from "../../testing/queue-tasks.ts";
import { DEFAULT_TENANT } from "./access/principal.ts";
import type { EventRecord } from "./ports/journal.ts";
import type { RelayCore } from "./relay-core.ts";

const AGENTS = [LULU, ZHIWEI, "kames@kamac", "朵拉@host"] as const;
const NAMES = ["zhiwei", "小名", "别名", "lulu", ...AGENTS] as const;
const KINDS = ["note", "request", "alert", "status"] as const;

/** One act. The numbers choose among the fixed names or, from the newest, among what earlier acts answered. */
interface Step {
  readonly act: keyof typeof ACTS;
  readonly a: number;
  readonly b: number;
  readonly isSecond: boolean;
}

interface Lease {
  readonly agent: string;
  readonly message_id: string;
  readonly lease_id: string;
}

/** What the answers of one history have named so far. */
class Answered {
  readonly leases: Lease[] = [];
  readonly tasks: string[] = [];
  readonly queued: string[] = [];
  readonly capabilities: string[] = [];

  lease(index: number): Lease {
    return fromNewest(this.leases, index) ?? { agent: ZHIWEI, message_id: "msg_0", lease_id: "none" };
  }

  task(index: number): string {
    return fromNewest(this.tasks, index) ?? "no-task";
  }
}

interface Scene {
  readonly core: RelayCore;
  readonly on: CoreOnMemory;
  readonly answered: Answered;
}

type Perform = (scene: Scene, a: number, b: number) => Promise<unknown>;

const ACTS = {
  send: (scene, a, b) => send(scene, { to: pick(AGENTS.slice(1), a), type: pick(KINDS, b) }),
  sendSafe: (scene, a, b) =>
    send(scene, {
      to: ZHIWEI,
      type: "request",
      idempotency: { duplicate_safety: "idempotent", key: `k${a}` },
      body: `${b % 2}`,
    }),
  sendOnce: (scene, a, b) => send(scene, { to: ZHIWEI, idempotency_key: `k${a % 3}`, body: `信${b % 2}` }),
  sendToName: (scene, a) => send(scene, { to: pick(NAMES, a) }),
  sendShort: (scene, a) => {
    const expires_at = new Date(scene.on.clock.nowMs() + 1_500).toISOString();
    return send(scene, { to: pick(AGENTS.slice(1), a), expires_at });
  },
  followUp: (scene, a, b) => send(scene, { to: pick(AGENTS.slice(1), a), task_id: scene.answered.task(b) }),
  answer: (scene, a, b) =>
    send(scene, {
      from: ZHIWEI,
      to: LULU,
      type: "reply",
      task_id: scene.answered.task(a),
      body: `答${b % 2}`,
    }),
  read: ({ core, on }, a, b) => core.mailboxes.read(on.operator, pick(AGENTS, a), { limit: (b % 3) + 1 }),
  lease: async ({ core, on, answered }, a, b) => {
    const agent = a < 4 ? ZHIWEI : LULU;
    const limits = b % 2 === 0 ? {} : { lease_ms: 1_000 };
    const answer = await core.mailboxes.lease(on.operator, agent, { max: (b % 2) + 1, ...limits });
    for (const { message_id, lease } of answer.messages)
      answered.leases.push({ agent, message_id, lease_id: lease.id });
    return answer;
  },
  ack: ({ core, on, answered }, a) => {
    const { agent, ...ref } = answered.lease(a);
    return core.mailboxes.ack(on.operator, agent, { leases: [ref] });
  },
  renew: ({ core, on, answered }, a) => {
    const { agent, ...ref } = answered.lease(a);
    return core.mailboxes.renew(on.operator, agent, { leases: [ref], lease_ms: 1_000 });
  },
  release: ({ core, on, answered }, a) => {
    const { agent, ...ref } = answered.lease(a);
    return core.mailboxes.release(on.operator, agent, { leases: [ref] });
  },
  failDelivery: ({ core, on, answered }, a) => {
    const { agent, ...ref } = answered.lease(a);
    return core.mailboxes.fail(on.operator, agent, { ...ref, reason: "做不了" });
  },
  requeue: (scene, a) => repair(scene, a, { action: "requeue", duplicate_risk: "operator_accepted" }),
  forceError: (scene, a) => repair(scene, a, { action: "force_error", message: "the worker is lost" }),
  retryStale: ({ core, on }, a, b) =>
    core.repairs.retryStale(on.operator, {
      enabled: true,
      min_lease_age_ms: a * 200,
      max_attempts: 3,
      max_requeues: b % 3,
    }),
  working: ({ core, on, answered }, a, b) =>
    core.tasks.reportStatus(on.operator, answered.task(a), { state: "working", ...heldLease(answered, b) }),
  artifact: ({ core, on, answered }, a, b) => {
    const artifact = { artifactId: `a${b % 2}`, parts: [{ text: "…" }] };
    return core.tasks.addArtifact(on.operator, answered.task(a), { artifact, ...heldLease(answered, b) });
  },
  complete: ({ core, on, answered }, a, b) =>
    core.tasks.complete(on.operator, answered.task(a), { text: "好了", ...heldLease(answered, b) }),
  failTask: ({ core, on, answered }, a, b) =>
    core.tasks.fail(on.operator, answered.task(a), { reason: "不行", ...heldLease(answered, b) }),
  cancel: ({ core, on, answered }, a) => core.tasks.cancel(on.operator, answered.task(a), {}),
  register: ({ core, on }, a, b) =>
    core.agents.register(on.operator, {
      agent_id: pick(AGENTS.slice(2), a),
      aliases: [pick(NAMES.slice(0, 3), b)],
      display_name: pick(NAMES.slice(1, 3), a),
    }),
  remove: ({ core, on }, a) => core.agents.remove(on.operator, pick(AGENTS.slice(2), a)),
  heartbeat: ({ core, on }, a) => core.agents.heartbeat(on.operator, pick(NAMES, a)),
  agents: ({ core, on }) => core.agents.list(on.operator, {}),
  grant: async ({ core, on, answered }, a, b) => {
    const [subject, action] = a % 2 === 0 ? [LULU, `a2a.send.${ZHIWEI}`] : [ZHIWEI, `a2a.recv.${LULU}`];
    const scope = b < 3 ? { max_uses: b + 1 } : {};
    const granted = await core.capabilities.grant(on.operator, { subject, action, scope });
    answered.capabilities.push(granted.id);
    return granted;
  },
  revoke: ({ core, on, answered }, a) =>
    core.capabilities.revoke(on.operator, { id: fromNewest(answered.capabilities, a) ?? "cap_0" }),
  sendAsAgent: ({ core, on }, a) =>
    core.messages.send(on.lulu, { to: ZHIWEI, type: "request", body: `信${a}` }),
  queueTask: async ({ core, on, answered }, a) => {
    const id = `00000000-0000-4000-8000-${String(answered.queued.length).padStart(12, "0")}`;
    const answer = await core.taskQueue.sendTask(on.lulu, aSharedTask(`k${a % 2}`, { id }));
    answered.queued.push(answer.task_id);
    return answer;
  },
  nextTask: ({ core, on }) => core.taskQueue.nextTask(on.zhiwei, {}),
  postResult: ({ core, on, answered }, a) =>
    core.taskQueue.postResult(on.zhiwei, anOkResult(fromNewest(answered.queued, a) ?? "no-task")),
  advance: async ({ on }, a) => on.clock.advance(a * 333),
  sweep: ({ core }) => core.sweep.step(),
} satisfies Readonly<Record<string, Perform>>;

async function send({ core, on, answered }: Scene, message: object): Promise<unknown> {
  const answer = await core.messages.send(on.operator, { from: LULU, body: "知微你好", ...message });
  if (answer.receipt.task_id !== undefined) answered.tasks.push(answer.receipt.task_id);
  return answer;
}

function repair({ core, on, answered }: Scene, index: number, command: object): Promise<unknown> {
  const { message_id, lease_id } = answered.lease(index);
  const said = { message_id, reason: "it hangs", command: { ...command, lease_id } };
  return core.repairs.repair(on.operator, said);
}

function heldLease(answered: Answered, index: number): { readonly lease_id?: string } {
  return index % 2 === 0 ? {} : { lease_id: answered.lease(index).lease_id };
}

describe("two cores on one store", () => {
  it("answer and record as one core does, whichever of them acts", async () => {
    const number = fc.nat({ max: 5 });
    const names = Object.keys(ACTS) as (keyof typeof ACTS)[];
    const act = fc.constantFrom(...names, "lease", "lease", "sendSafe");
    const step: fc.Arbitrary<Step> = fc.record({ act, a: number, b: number, isSecond: fc.boolean() });
    const histories = fc.array(step, { minLength: 1, maxLength: 150, size: "max" });
    await fc.assert(
      fc.asyncProperty(histories, fc.boolean(), async (steps, capabilities) => {
        const two = await historyOf(steps, { capabilities, cores: 2 });
        assert.deepEqual(two, await historyOf(steps, { capabilities, cores: 1 }));
      }),
      { numRuns: 60, plugins: [fc.interruptAfterTimeLimit(8_000)] },
    );
  });
});

/** Every answer, then the whole journal and what each core shows, without what is random. */
async function historyOf(
  steps: readonly Step[],
  { cores, capabilities }: { readonly cores: 1 | 2; readonly capabilities: boolean },
): Promise<readonly string[]> {
  await using on = await coreOnMemory({ capabilities });
  const other = cores === 1 ? on : on.beside();
  const answered = new Answered();
  const story: string[] = [];
  const hideRandomness = newMask();
  const tell = (said: unknown): void => void story.push(hideRandomness(JSON.stringify(said)));
  for (const { act, a, b, isSecond } of steps) {
    // Ids of two relays are in the order of their milliseconds only.
    on.clock.advance(1);
    const perform: Perform = ACTS[act];
    tell([act, a, b, await answerOf(perform({ core: isSecond ? other : on, on, answered }, a, b))]);
  }
  for (const core of [on, other]) {
    for (const agent of [LULU, ZHIWEI]) {
      tell(await core.mailboxes.read(on.operator, agent, { peek: true, limit: 500 }));
    }
    tell(await core.repairs.queue(on.operator, { limit: 500 }));
    tell(await core.agents.list(on.operator, {}));
    tell((await core.journal.verify(on.operator)).problem ?? "the chain holds");
  }
  for (const event of await eventsOf(on)) tell({ ...event, hash: undefined, previousHash: undefined });
  return story;
}

async function eventsOf({ store }: CoreOnMemory): Promise<readonly EventRecord[]> {
  const all = { type: undefined, agentId: undefined, threadId: undefined, limit: 100_000 };
  const filter = { ...all, tenant: DEFAULT_TENANT, afterSeq: 0, scanRowsMax: 100_000 };
  return (await store.journal.events(filter)).events;
}

async function answerOf(done: Promise<unknown>): Promise<unknown> {
  try {
    return await done;
  } catch (reason) {
    if (reason instanceof RelayError) return { code: reason.code, message: reason.message };
    throw reason;
  }
}

/** Replaces each id, digest, key and signature by the number of its first appearance. */
function newMask(): (text: string) => string {
  const numbers = new Map<string, string>();
  const numberOf = (found: string): string => {
    const number = numbers.get(found) ?? `#${numbers.size + 1}`;
    numbers.set(found, number);
    return number;
  };
  return (text) => text.replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\w+/-]{20,}={0,2}/g, numberOf);
}

function pick<Item>(items: readonly Item[], index: number): Item {
  return items[index % items.length] as Item;
}

function fromNewest<Item>(items: readonly Item[], index: number): Item | undefined {
  return items.at(-1 - (index % Math.max(items.length, 1)));
}
