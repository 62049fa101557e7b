import { spawnSync } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { mkdtemp, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A separate file system, small enough to be filled in a moment. */
export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Takes all the room that is left. */
  fill(): void;
  makeRoom(): void;
}

/** Why there can be none here, or false. Found out by trying, because containers differ. */
export function noSmallDisks(): string | false {
  if (process.platform !== "linux") return "a small disk is mounted with Linux's tmpfs";
  if (process.getuid?.() !== 0) return "only root can mount a small disk";
  const folder = join(tmpdir(), `a2a-relay-disk-trial-${process.pid}`);
  const { status, stderr } = spawnSync(
    "sh",
    ["-c", 'mkdir "$0" && mount -t tmpfs -o size=64k none "$0"', folder],
    {
      encoding: "utf8",
    },
  );
  spawnSync("umount", [folder]);
  rmSync(folder, { recursive: true, force: true });
  return status === 0 ? false : `a small disk cannot be mounted here: ${stderr.trim()}`;
}

export async function mountSmallDisk(mib: number): Promise<SmallDisk> {
  const path = await mkdtemp(join(tmpdir(), "a2a-relay-disk-"));
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${mib}m`, "none", path], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the small disk could not be mounted: ${stderr}`);
  const filler = join(path, "filler");
  return {
    path,
    fill: () => fill(filler),
    makeRoom: () => rmSync(filler, { force: true }),
    [Symbol.asyncDispose]: async () => {
      // Lazily, so that a process that still holds a file cannot keep the mount.
      spawnSync("umount", ["-l", path]);
      await rmdir(path);
    },
  };
}

function fill(path: string): void {
  const file = openSync(path, "a");
  try {
    for (let bytes = 1 << 20; bytes >= 1;) {
      try {
        if (writeSync(file, Buffer.alloc(bytes)) < bytes) bytes >>= 1;
      } catch (reason) {
        if ((reason as NodeJS.ErrnoException).code !== "ENOSPC") throw reason;
        bytes >>= 1;
      }
    }
  } finally {
    closeSync(file);
  }
}
