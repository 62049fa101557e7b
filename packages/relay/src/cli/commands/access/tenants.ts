import type { TenantView } from "@a2a-relay/protocol";
import { type Command, Option } from "commander";
import type { CommandLine } from "../../command-line/command-line.ts";
import { formatTime } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/table.ts";
import { visibleLine } from "../../terminal/text.ts";

const COLUMNS: readonly Column<TenantView>[] = [
  { title: "TENANT", text: (tenant) => tenant.tenant, flexible: true },
  { title: "CAPABILITIES", text: (tenant) => tenant.capabilities },
  { title: "CREATED", text: (tenant) => formatTime(tenant.created_at ?? "") },
];

export function addTenants(line: CommandLine): void {
  const tenants = line.command("tenants", "List tenants and set what holds in them.", [
    "a2a-relay tenants list",
    "a2a-relay keys create --tenant acme   # a tenant begins with its first key",
  ]);
  addList(line, tenants);
  addSet(line, tenants);
}

function addList(line: CommandLine, parent: Command): void {
  line
    .command("list", "List the tenants you may see.", ["a2a-relay tenants list"], { parent, isDefault: true })
    .action(
      line.run(async ({ client, output, signal }) => {
        const { tenants } = await client.tenants({ signal });
        await output.show({ count: tenants.length, tenants }, () => output.table(tenants, COLUMNS));
      }),
    );
}

function addSet(line: CommandLine, parent: Command): void {
  line
    .command(
      "set <name>",
      "Switch capabilities on or off in a tenant.",
      ["a2a-relay tenants set acme --capabilities on"],
      { parent },
    )
    .addOption(
      new Option("--capabilities <on|off>", "whether tasks need capability tokens there")
        .choices(["on", "off"])
        .makeOptionMandatory(),
    )
    .action(
      line.run<{ readonly capabilities: "on" | "off" }, [string]>(
        async ({ client, output, signal }, { capabilities }, name) => {
          const tenant = await client.changeTenant(name, { capabilities }, { signal });
          await output.show(tenant, () => [
            visibleLine(`${tenant.tenant}: capabilities are ${tenant.capabilities}`),
          ]);
        },
      ),
    );
}
