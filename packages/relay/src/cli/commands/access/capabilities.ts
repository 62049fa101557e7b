import type { RelayClient } from "@a2a-relay/client";
import type { CapabilityScope, CapabilityUsage, CapabilityView } from "@a2a-relay/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, parseCount } from "../../command-line/options.ts";
import { formatTime, parseMomentMs } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { factLines, visibleLine } from "../../terminal/text.ts";

interface GrantOptions {
  readonly subject: string;
  readonly scope?: CapabilityScope;
  readonly maxUses?: number;
  readonly delegable?: boolean;
  readonly expires?: number;
}

export function addCapabilities(line: CommandLine): void {
  const parent = line.command("capabilities", "Grant, revoke and list what agents may do with each other.", [
    "a2a-relay capabilities grant a2a.send.zhiwei --subject lulu",
    "a2a-relay capabilities usage",
  ]);
  addList(line, parent);
  addUsage(line, parent);
  addGrant(line, parent);
  addRevoke(line, parent);
}

function addGrant(line: CommandLine, parent: Command): void {
  line
    .command(
      "grant <action>",
      "Allow an agent one action: a2a.send.<agent>, a2a.recv.<agent>, a2a.respond.<agent>, a2a.repair.requeue, a2a.repair.force_error or a2a.compact.",
      [
        "a2a-relay capabilities grant a2a.send.zhiwei --subject lulu",
        "a2a-relay capabilities grant a2a.recv.lulu --subject zhiwei --expires 30d",
        `a2a-relay capabilities grant a2a.repair.requeue --subject lulu --scope '{"duplicate_risk":"idempotent"}' --max-uses 5`,
      ],
      { parent },
    )
    .requiredOption("--subject <agent>", "who may do it")
    .addOption(
      new Option("--scope <json>", "what it is narrowed to, a JSON object; see the guide").argParser(
        parseScope,
      ),
    )
    .option("--max-uses <n>", "how often it may be used", parseCount)
    .option("--delegable", "its subject may pass it on, once, no wider than it is")
    .option("--expires <when>", "when it ends: 2h, or a time", (text) => parseMomentMs(text))
    .action(
      line.run<GrantOptions, [string]>(async ({ client, output, signal }, options, action) => {
        const { subject, expires } = options;
        const scope = {
          ...options.scope,
          ...given({ max_uses: options.maxUses, delegable: options.delegable }),
        };
        const request = { subject, action, scope, ...given({ expires_at: expires }) };
        const granted = await client.grantCapability(request, { signal });
        await output.show(granted, () => [
          visibleLine(`granted ${granted.written_action} to ${granted.subject}`),
          ...factLines([
            ["id", granted.id],
            ["action", granted.action],
            ["scope", scopeText(granted.scope)],
            ["expires", formatTime(granted.expires_at ?? "")],
          ]),
        ]);
      }),
    );
}

function addRevoke(line: CommandLine, parent: Command): void {
  line
    .command(
      "revoke <capability-id>",
      "Take a capability back, and with it whatever was delegated from it.",
      ["a2a-relay capabilities revoke cap_01981c5e-0000-7000-8000-000000000000"],
      { parent },
    )
    .action(
      line.run<object, [string]>(async ({ client, output, signal }, _options, id) => {
        const answer = await client.revokeCapability(id, { signal });
        await output.show(answer, () => [
          visibleLine(answer.revoked ? `revoked ${answer.id}` : `${answer.id} had been revoked before`),
        ]);
      }),
    );
}

function addList(line: CommandLine, parent: Command): void {
  line
    .command(
      "list",
      "List all capabilities, revoked and expired ones too.",
      ["a2a-relay capabilities list"],
      {
        parent,
        isDefault: true,
      },
    )
    .action(
      line.run(async ({ client, output, signal }) => {
        const capabilities = await allPages((page) => client.capabilities(page, { signal }), "capabilities");
        await output.show({ capabilities }, () =>
          capabilities.length === 0 ? ["no capabilities"] : output.table(capabilities, LIST_COLUMNS),
        );
      }),
    );
}

function addUsage(line: CommandLine, parent: Command): void {
  line
    .command(
      "usage",
      "Show what is left of each capability, and whether it would be honoured now.",
      ["a2a-relay capabilities usage"],
      { parent },
    )
    .action(
      line.run(async ({ client, output, signal }) => {
        const grants = await allPages((page) => client.capabilityUsage(page, { signal }), "grants");
        await output.show({ grants }, () =>
          grants.length === 0 ? ["no capabilities"] : output.table(grants, USAGE_COLUMNS),
        );
      }),
    );
}

const LIST_COLUMNS: readonly Column<CapabilityView>[] = [
  { title: "ID", text: (item) => item.id },
  { title: "SUBJECT", text: (item) => item.subject, flexible: true },
  { title: "ACTION", text: (item) => item.written_action, flexible: true },
  { title: "SCOPE", text: (item) => scopeText(item.scope), flexible: true },
  { title: "GRANTED BY", text: (item) => item.granted_by },
  { title: "EXPIRES", text: (item) => formatTime(item.expires_at ?? "") },
  { title: "REVOKED", text: (item) => formatTime(item.revoked_at ?? "") },
];

const USAGE_COLUMNS: readonly Column<CapabilityUsage>[] = [
  { title: "ID", text: (item) => item.id },
  { title: "SUBJECT", text: (item) => item.subject, flexible: true },
  { title: "ACTION", text: (item) => item.written_action, flexible: true },
  { title: "SCOPE", text: (item) => scopeText(item.scope), flexible: true },
  {
    title: "EFFECTIVE",
    text: (item) => (item.effective ? "yes" : "no"),
    style: (item) => (item.effective ? "green" : "dim"),
  },
  {
    title: "USED",
    text: ({ budget }) => (budget === undefined ? "" : `${budget.used} of ${budget.max_uses}`),
  },
  { title: "EXPIRES", text: (item) => formatTime(item.expires_at ?? "") },
];

function scopeText(scope: CapabilityScope): string {
  return Object.keys(scope).length === 0 ? "" : JSON.stringify(scope);
}

function parseScope(text: string): CapabilityScope {
  try {
    const scope: unknown = JSON.parse(text);
    if (typeof scope === "object" && scope !== null && !Array.isArray(scope)) return scope;
  } catch {
    // The sentence below says it better.
  }
  throw new InvalidArgumentError(`Expected a JSON object such as {"task_id":"…"}.`);
}

/** Every page of one list. */
async function allPages<Name extends string, Item>(
  read: (
    page: Parameters<RelayClient["capabilities"]>[0],
  ) => Promise<{ readonly [member in Name]: readonly Item[] } & { readonly pageToken?: string }>,
  name: Name,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let pageToken: string | undefined;
  do {
    const page = await read(given({ page_token: pageToken, limit: 500 }));
    items.push(...page[name]);
    pageToken = page.pageToken;
  } while (pageToken !== undefined);
  return items;
}
