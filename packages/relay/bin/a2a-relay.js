#!/usr/bin/env node
// Decides what runs: the sources in a checkout, the built files in an installed package, and another Node where
// this one is too old. Plain JavaScript without newer syntax, so that an old Node can report that it is too old.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import module from "node:module";
import { dirname, join } from "node:path";
import { isatty } from "node:tty";
import { fileURLToPath, pathToFileURL } from "node:url";

const NODE_MAJOR_MIN = 24;
const PARENT_CHECK_MS = 200;
const here = dirname(fileURLToPath(import.meta.url));

if (isRunByNpm()) stopWithParent();
if (majorOf(process.versions.node) >= NODE_MAJOR_MIN) {
  await runHere();
} else {
  const newerNode = findNewerNode();
  if (newerNode === undefined) {
    process.stderr.write(
      `a2a-relay needs Node ${NODE_MAJOR_MIN} or newer; this is v${process.versions.node} ` +
        `(${process.execPath}). Install it from https://nodejs.org or run it through npm in a checkout.\n`,
    );
    process.exitCode = 1;
  } else {
    runWith(newerNode);
  }
}

async function runHere() {
  if (process.channel) {
    // Started by an older Node's launcher, which may be killed without a signal to this process.
    process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
    process.channel.unref();
  }
  // Keeps compiled modules in Node's default cache directory. Where that cannot be written, it does nothing.
  module.enableCompileCache();
  const source = join(here, "..", "src", "cli", "main.ts");
  // Packages hold no sources, so their presence means a checkout, where they are always the newer ones.
  if (!existsSync(source)) {
    await import("../dist/cli/main.js");
    return;
  }
  // The workspace's packages offer their sources under this condition; a flag for it would cost a process.
  module.registerHooks({
    resolve: (specifier, context, nextResolve) =>
      nextResolve(specifier, { ...context, conditions: [...context.conditions, "source"] }),
  });
  await import(pathToFileURL(source).href);
}

/** `npm exec`, `npx`, or `npm start` in a checkout: stopping npm must stop this program. */
function isRunByNpm() {
  const { npm_lifecycle_event: event, npm_package_name: name } = process.env;
  return event === "npx" || (event === "start" && name === "a2a-relay-workspace");
}

/**
 * npm puts a shell between itself and us, which ends at a SIGTERM without passing it on. Without this, stopping
 * npm would leave the relay running.
 */
function stopWithParent() {
  const parent = process.ppid;
  let hasSignal = false;
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => (hasSignal = true));
  let missed = 0;
  const check = () => {
    missed = process.ppid === parent ? 0 : missed + 1;
    // At the second check: by then a signal from the terminal that ended the shell has arrived here too.
    if (missed === 2 && !hasSignal) process.kill(process.pid, "SIGTERM");
  };
  setInterval(check, PARENT_CHECK_MS).unref();
}

/** The Node that `npm install` brought along: its platform package, or whatever npm scripts call `node`. */
function findNewerNode() {
  const platform = process.platform === "win32" ? "win" : process.platform;
  const executable = process.platform === "win32" ? "node.exe" : "node";
  const locations = [join(`node-${platform}-${process.arch}`, "bin", executable), join(".bin", executable)];
  for (let folder = here; ; folder = dirname(folder)) {
    for (const location of locations) {
      const path = join(folder, "node_modules", location);
      if (existsSync(path) && isNewEnough(path)) return path;
    }
    if (dirname(folder) === folder) return undefined;
  }
}

/** Asked rather than assumed: an old Node here would start this file again, for ever. */
function isNewEnough(path) {
  const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8", timeout: 10000 });
  return typeof stdout === "string" && majorOf(stdout.replace(/^v/, "")) >= NODE_MAJOR_MIN;
}

function runWith(path) {
  const child = spawn(path, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    // The channel tells the child when this process is gone, also when it was killed outright.
    stdio: ["inherit", "inherit", "inherit", "ipc"],
  });
  const onTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
  const forward = (signal) => {
    // A terminal sends these to the child as well; a second one would mean an impatient user.
    if (onTerminal && (signal === "SIGINT" || signal === "SIGHUP")) return;
    child.kill(signal);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, forward);

  child.on("error", (error) => {
    process.stderr.write(`a2a-relay could not start ${path}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    for (const name of signals) process.removeAllListeners(name);
    if (signal === null) process.exitCode = code;
    else process.kill(process.pid, signal);
  });
}

function majorOf(version) {
  return Number.parseInt(version, 10);
}
