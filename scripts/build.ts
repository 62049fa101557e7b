import { spawnSync } from "node:child_process";
import { cp, glob, mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Makes `dist` of every package: compiled modules, their declarations, and the files they read at run time. */

const ROOT = join(import.meta.dirname, "..");

// A package comes after those it imports, because it is compiled against their declarations.
const PACKAGES = ["protocol", "client", "relay"];

await refuseUnknownPackages();
for (const name of PACKAGES) await buildPackage(join(ROOT, "packages", name));

async function buildPackage(folder: string): Promise<void> {
  // What is left of an earlier build would be published with the new one.
  await rm(join(folder, "dist"), { recursive: true, force: true });
  compile(join(folder, "tsconfig.build.json"));
  await copyAssets(join(folder, "src"), join(folder, "dist"));
  // npm publishes a licence only from the package's own folder; it is written once, at the root.
  await cp(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
}

function compile(project: string): void {
  const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const { status } = spawnSync(process.execPath, [compiler, "--project", project], { stdio: "inherit" });
  if (status !== 0) throw new Error(`${project} does not compile`);
}

/** The compiler leaves out what is not TypeScript: migrations, pages. */
async function copyAssets(from: string, to: string): Promise<void> {
  for await (const entry of glob("**/*", { cwd: from, withFileTypes: true })) {
    // Sources are compiled, and the pages beside them are for their readers.
    if (!entry.isFile() || /\.(?:ts|md)$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const copy = join(to, path.slice(from.length));
    await mkdir(dirname(copy), { recursive: true });
    await cp(path, copy);
  }
}

/** A package that is missing above would otherwise be published without being built. */
async function refuseUnknownPackages(): Promise<void> {
  const folders = await readdir(join(ROOT, "packages"));
  const unknown = folders.filter((name) => !PACKAGES.includes(name));
  if (unknown.length > 0)
    throw new Error(`scripts/build.ts does not know how to build ${unknown.join(", ")}`);
}
