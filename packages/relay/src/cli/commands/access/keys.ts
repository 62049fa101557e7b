import type { RelayClient } from "@a2a-relay/client";
import type { KeyCreated, KeysQuery, KeyView } from "@a2a-relay/protocol";
import { type Command, Option } from "commander";
import type { CommandLine } from "../../command-line/command-line.ts";
import { given, collect, durationOption } from "../../command-line/options.ts";
import { formatTime, parseMomentMs } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { type Paint, type TextStyle, factLines, visibleLine } from "../../terminal/text.ts";
import { SHOWN_ONCE } from "../agents/agent-views.ts";

interface CreateOptions {
  readonly tenant?: string;
  readonly agent?: string;
  readonly verb?: readonly string[];
  readonly expires?: number;
  readonly sign?: true;
}

interface ListOptions {
  readonly tenant?: string;
  readonly agent?: string;
}

const STATE_STYLE: Readonly<Record<KeyView["state"], TextStyle>> = {
  active: "green",
  expired: "dim",
  revoked: "red",
};

const COLUMNS: readonly Column<KeyView>[] = [
  { title: "ID", text: (key) => key.key_id },
  { title: "FOR", text: (key) => key.agent_id ?? "operator", flexible: true },
  { title: "USE", text: (key) => (key.use === "sign" ? "sign" : "") },
  { title: "STATE", text: (key) => key.state, style: (key) => STATE_STYLE[key.state] },
  { title: "VERBS", text: (key) => key.verbs?.join(", ") ?? "", flexible: true },
  { title: "CREATED", text: (key) => formatTime(key.created_at) },
  { title: "EXPIRES", text: (key) => formatTime(key.expires_at ?? "") },
];

export function addKeys(line: CommandLine): void {
  const keys = line.command("keys", "Make, list, rotate and revoke API keys.", [
    "a2a-relay keys create --agent lulu@kamac --expires 90d",
    "a2a-relay keys list",
  ]);
  addCreate(line, keys);
  addList(line, keys);
  addRevoke(line, keys);
  addRotate(line, keys);
}

function addCreate(line: CommandLine, parent: Command): void {
  line
    .command(
      "create",
      "Make a key for an agent, or for an operator of a tenant.",
      [
        "a2a-relay keys create --agent lulu@kamac",
        "a2a-relay keys create --tenant acme --expires 90d",
        "a2a-relay keys create --verb events.read --verb metrics.read",
        "a2a-relay keys create --agent lulu@kamac --sign",
      ],
      { parent },
    )
    .option("--tenant <name>", "the tenant it acts in, which begins with its first key (default: your own)")
    .option("--agent <agent>", "the agent it speaks for, by its id, registered or not (default: an operator)")
    .option("--verb <verb>", "all it may be used for; may be repeated (default: everything)", collect)
    .addOption(
      new Option("--expires <when>", "a duration from now or a time (default: never)").argParser(
        (text: string) => parseMomentMs(text),
      ),
    )
    .option("--sign", "a secret that signs messages for POST /api/a2a/inbox and opens nothing else")
    .action(
      line.run<CreateOptions>(async ({ client, output, signal }, options) => {
        const request = given({
          use: options.sign === true ? ("sign" as const) : undefined,
          tenant: options.tenant,
          agent_id: options.agent,
          verbs: options.verb === undefined ? undefined : [...options.verb],
          expires_at: options.expires,
        });
        const created = await client.createKey(request, { signal });
        await output.show(created, () => newKeyLines(created, output.paint));
      }),
    );
}

function addList(line: CommandLine, parent: Command): void {
  line
    .command("list", "List keys, revoked and expired ones too.", ["a2a-relay keys list --agent lulu@kamac"], {
      parent,
      isDefault: true,
    })
    .option("--tenant <name>", "the tenant (default: your own)")
    .option("--agent <agent>", "only those of this agent, by its id")
    .action(
      line.run<ListOptions>(async ({ client, output, signal }, options) => {
        const all = await allKeys(client, given({ tenant: options.tenant, agent: options.agent }), {
          signal,
        });
        await output.show({ count: all.length, keys: all }, () =>
          all.length === 0 ? ["no keys"] : output.table(all, COLUMNS),
        );
      }),
    );
}

function addRevoke(line: CommandLine, parent: Command): void {
  line
    .command(
      "revoke <key-id>",
      "Make a key open nothing from now on.",
      ["a2a-relay keys revoke key_019e06ea-0000-7000-8000-000000000001"],
      { parent },
    )
    .action(
      line.run<object, [string]>(async ({ client, output, signal }, _options, id) => {
        const key = await client.revokeKey(id, { signal });
        await output.show(key, () => [visibleLine(`revoked ${key.key_id}`), ...successorLines(key)]);
      }),
    );
}

/** An operator who revokes a leaked key may not know that it was rotated. */
function successorLines({ replaced_by: successor }: KeyView): readonly string[] {
  if (successor === undefined) return [];
  const goesOn = `Its successor, ${successor}, goes on working unless it has ended as well`;
  return [visibleLine(`${goesOn}; to revoke it too: a2a-relay keys revoke ${successor}`)];
}

function addRotate(line: CommandLine, parent: Command): void {
  line
    .command(
      "rotate <key-id>",
      "Make a new key of the same scope; the old one goes on for a while.",
      ["a2a-relay keys rotate key_019e06ea-0000-7000-8000-000000000001 --overlap 1h"],
      { parent },
    )
    .addOption(durationOption("--overlap <duration>", "how long the old key goes on (default: 24h)"))
    .action(
      line.run<{ readonly overlap?: number }, [string]>(async ({ client, output, signal }, options, id) => {
        const rotated = await client.rotateKey(id, given({ overlap_ms: options.overlap }), { signal });
        await output.show(rotated, () => [
          ...newKeyLines(rotated, output.paint),
          visibleLine(`The old key, ${rotated.old_key_id}, ends at ${formatTime(rotated.old_expires_at)}.`),
        ]);
      }),
    );
}

function newKeyLines(key: KeyCreated, paint: Paint): readonly string[] {
  return [
    paint("bold", visibleLine(key.key)),
    ...factLines([
      ["id", key.key_id],
      ["tenant", key.tenant],
      ["for", key.agent_id ?? "an operator"],
      ["use", key.use === "sign" ? "signs messages" : undefined],
      ["verbs", key.verbs?.join(", ")],
      ["expires", formatTime(key.expires_at ?? "")],
    ]),
    SHOWN_ONCE,
  ];
}

async function allKeys(
  client: RelayClient,
  query: KeysQuery,
  call: { readonly signal: AbortSignal },
): Promise<readonly KeyView[]> {
  const keys: KeyView[] = [];
  let pageToken: string | undefined;
  do {
    const page = await client.keys({ ...query, ...given({ page_token: pageToken, limit: 500 }) }, call);
    keys.push(...page.keys);
    pageToken = page.pageToken;
  } while (pageToken !== undefined);
  return keys;
}
