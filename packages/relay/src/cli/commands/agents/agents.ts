import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { readFile } from "node:fs/promises";
import { proveKey } from "@a2a-relay/client";
import type { RegisterRequest, Skill } from "@a2a-relay/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, collect, durationOption } from "../../command-line/options.ts";
import { visibleLine } from "../../terminal/text.ts";
import { AGENT_COLUMNS, agentLines, allAgents, ownKeyLines } from "./agent-views.ts";

interface RegisterOptions {
  readonly id?: string;
  readonly displayName?: string;
  readonly alias?: readonly string[];
  readonly skill?: readonly Skill[];
  readonly callbackUrl?: string;
  readonly push?: "webhook" | "a2a" | "off";
  readonly notice?: Switch;
  readonly pushAck?: Switch;
  readonly ttl?: number;
  readonly card?: string;
  readonly privateKey?: string;
  readonly tenant?: string;
}

type Switch = "on" | "off";

export function addAgents(line: CommandLine): void {
  const agents = line.command("agents", "List, show, register and remove agents.", [
    "a2a-relay agents register --id lulu@kamac --display-name lulu --alias lu",
    "a2a-relay agents list",
  ]);
  addList(line, agents);
  addShow(line, agents);
  addRegister(line, agents);
  addRemove(line, agents);
  addHeartbeat(line, agents);
}

export function addList(line: CommandLine, parent: Command): void {
  const name = parent.name();
  line.command("list", `List all ${name}.`, [`a2a-relay ${name} list`], { parent, isDefault: true }).action(
    line.run(async ({ client, output, signal }) => {
      const all = await allAgents(client, { signal });
      await output.show({ count: all.length, [name]: all }, () =>
        all.length === 0 ? [`no ${name}`] : output.table(all, AGENT_COLUMNS),
      );
    }),
  );
}

export function addShow(line: CommandLine, parent: Command): void {
  line
    .command("show <agent>", "Show one, by id or alias.", [`a2a-relay ${parent.name()} show lulu`], {
      parent,
    })
    .action(
      line.run<object, [string]>(async ({ client, output, signal }, _options, id) => {
        const agent = await client.agent(id, { signal });
        await output.show(agent, () => agentLines(agent, output.paint));
      }),
    );
}

function addRegister(line: CommandLine, parent: Command): void {
  line
    .command(
      "register",
      "Register an agent or update it.",
      [
        "a2a-relay agents register --id zhiwei@known-blocks1 --alias zhiwei --skill review:Reviews_pull_requests",
      ],
      { parent },
    )
    .option("--id <agent>", "its stable id; without one the relay assigns it")
    .option("--display-name <name>", "the name for people")
    .option("--alias <name>", "another name it is found by; may be repeated", collect)
    .option("--skill <id[:description]>", "what it can do; may be repeated", parseSkill)
    .option("--callback-url <url>", "where it can be reached")
    .addOption(
      new Option("--push <webhook|a2a|off>", "whether and how new messages are sent there").choices([
        "webhook",
        "a2a",
        "off",
      ]),
    )
    .addOption(switchOption("--notice <on|off>", "push only that a message arrived, not the message"))
    .addOption(switchOption("--push-ack <on|off>", "a push that is answered with 2xx is acknowledged"))
    .addOption(durationOption("--ttl <duration>", "how long a heartbeat holds"))
    .option("--card <file>", "its A2A agent card, a JSON file; may be partial")
    .option("--private-key <file>", "its own Ed25519 key, PEM; only the public half leaves this machine")
    .option("--tenant <name>", "the tenant of your key, which the proof for --private-key names", "default")
    .action(
      line.run<RegisterOptions>(async ({ client, output, signal }, options) => {
        const answer = await client.register(await requestOf(options), { signal });
        await output.show(answer, () => [
          answer.created ? "registered" : "updated",
          ...agentLines(answer.agent, output.paint),
          ...ownKeyLines(answer, output.paint),
        ]);
      }),
    );
}

function addRemove(line: CommandLine, parent: Command): void {
  line
    .command(
      "remove <agent>",
      "Close its mailbox; senders of open messages are told.",
      [`a2a-relay ${parent.name()} remove lulu@kamac`],
      { parent },
    )
    .action(
      line.run<object, [string]>(async ({ client, output, signal }, _options, id) => {
        await client.deregister(id, { signal });
        await output.show({ removed: id }, () => [visibleLine(`removed ${id}`)]);
      }),
    );
}

function addHeartbeat(line: CommandLine, parent: Command): void {
  line
    .command(
      "heartbeat <agent>",
      "Report that an agent is online.",
      ["a2a-relay agents heartbeat lulu@kamac"],
      {
        parent,
      },
    )
    .action(
      line.run<object, [string]>(async ({ client, output, signal }, _options, id) => {
        await client.heartbeat(id, { signal });
        const agent = await client.agent(id, { signal });
        await output.show(agent, () => [visibleLine(`${agent.agent_id} is ${agent.presence}`)]);
      }),
    );
}

async function requestOf(options: RegisterOptions): Promise<RegisterRequest> {
  return given({
    agent_id: options.id,
    display_name: options.displayName,
    aliases: options.alias === undefined ? undefined : [...options.alias],
    skills: options.skill === undefined ? undefined : [...options.skill],
    callback_url: options.callbackUrl,
    push: options.push === "off" ? null : options.push,
    notice: isOn(options.notice),
    push_ack: isOn(options.pushAck),
    ttl_ms: options.ttl,
    card: options.card === undefined ? undefined : await readCard(options.card),
    ...(options.privateKey === undefined
      ? {}
      : await proveKeyOf(options.privateKey, { agentId: options.id, tenant: options.tenant })),
  });
}

function switchOption(flags: string, description: string): Option {
  return new Option(flags, description).choices(["on", "off"]);
}

function isOn(text: Switch | undefined): boolean | undefined {
  return text === undefined ? undefined : text === "on";
}

async function readCard(path: string): Promise<Record<string, unknown>> {
  try {
    const card: unknown = JSON.parse(await readFile(path, "utf8"));
    if (typeof card === "object" && card !== null && !Array.isArray(card)) return { ...card };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidArgumentError(`--card ${path} cannot be read: ${why}`);
  }
  throw new InvalidArgumentError(`--card ${path} is not a JSON object`);
}

function parseSkill(text: string, earlier: readonly Skill[] | undefined): readonly Skill[] {
  const colon = text.indexOf(":");
  const skill = colon < 0 ? { id: text } : { id: text.slice(0, colon), description: text.slice(colon + 1) };
  return [...(earlier ?? []), skill];
}

interface AddOptions {
  readonly id: string;
  readonly displayName?: string;
  readonly alias?: readonly string[];
}

/** The same agents as an address book. */
export function addContacts(line: CommandLine): void {
  const contacts = line.command("contacts", "The address book: agents by id and alias.", [
    "a2a-relay contacts add --id kames@kamac --display-name kames --alias kam",
    "a2a-relay contacts list",
  ]);
  line
    .command(
      "add",
      "Add a contact or update it.",
      ["a2a-relay contacts add --id kames@kamac --display-name kames --alias kames --alias kam"],
      { parent: contacts },
    )
    .requiredOption("--id <agent>", "its stable id")
    .option("--display-name <name>", "the name for people")
    .option("--alias <name>", "another name it is found by; may be repeated", collect)
    .action(
      line.run<AddOptions>(async ({ client, output, signal }, options) => {
        const aliases = options.alias === undefined ? undefined : [...options.alias];
        const request = given({ agent_id: options.id, display_name: options.displayName, aliases });
        const answer = await client.register(request, { signal });
        await output.show(given({ ...answer.agent, api_key: answer.api_key }), () => [
          ...agentLines(answer.agent, output.paint),
          ...ownKeyLines(answer, output.paint),
        ]);
      }),
    );
  addList(line, contacts);
  addShow(line, contacts);
  addRemove(line, contacts);
}

const PUBLIC_KEY_BYTES = 32;

/** The public half of a private key in a file, and the proof that the caller holds the private one. */
async function proveKeyOf(
  path: string,
  claim: { readonly agentId: string | undefined; readonly tenant: string | undefined },
): Promise<Pick<RegisterRequest, "pubkey_b58" | "key_proof">> {
  const { agentId, tenant } = claim;
  if (agentId === undefined) {
    throw new InvalidArgumentError("--private-key needs --id too, because the proof names the agent");
  }
  const privateKey = await readPrivateKey(path);
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  return proveKey({
    agentId,
    tenant,
    publicKey: spki.subarray(-PUBLIC_KEY_BYTES),
    sign: (bytes) => sign(null, bytes, privateKey),
  });
}

async function readPrivateKey(path: string): Promise<KeyObject> {
  try {
    const key = createPrivateKey(await readFile(path, "utf8"));
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new InvalidArgumentError(`--private-key ${path} cannot be read: ${why}`);
  }
  throw new InvalidArgumentError(
    `--private-key ${path} is no Ed25519 key; make one with: openssl genpkey -algorithm ed25519`,
  );
}
