/**
 * Control groups (version 2) of machines' QEMUs, in one directory for each data directory. They are outside of the
 * platform's own group, because QEMU outlives the platform.
 */
import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { access, mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ifAbsent, ifEnded } from "@hibernaut/lib/absence";
import { messageOf } from "@hibernaut/lib/text";

/** Where systemd mounts them, and everyone else since. */
const MOUNT = "/sys/fs/cgroup";
const NEEDED = ["cpu", "memory", "pids"];
/** With it, a busy disk is shared evenly, as far as its scheduler can. */
const WELCOME = "io";
/** A group can be removed when the last process in it has been collected, which takes a moment after its end. */
const REMOVE_TRIES = 100;
const REMOVE_PAUSE_MS = 20;

/** The directory of a data directory's groups. */
function folderOf(dataDir: string, mount: string): string {
  return join(mount, `hibernaut-${createHash("sha256").update(dataDir).digest("hex").slice(0, 6)}`);
}

async function removeEmpty(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => []))
    if (entry.isDirectory()) await rmdir(join(folder, entry.name)).catch(() => {}); // a guest is running there
}

/** The groups of one data directory. */
export class Cgroups {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Why there cannot be any, as far as that can be seen without making one. Undefined when nothing speaks against it. */
  static async missing(mount = MOUNT): Promise<string | undefined> {
    const offered = await readFile(join(mount, "cgroup.controllers"), "utf8").catch(ifAbsent(undefined));
    if (offered === undefined) return `${mount} is not a cgroup2 file system`;
    const lacking = NEEDED.filter((name) => !offered.split(/\s/).includes(name));
    if (lacking.length > 0) return `the host's control groups lack ${lacking.join(", ")}`;
    const writable = await access(join(mount, "cgroup.subtree_control"), constants.W_OK).catch(messageOf);
    return writable === undefined ? undefined : `control groups cannot be made (${writable})`;
  }

  /** Makes the directory, and removes what earlier VMMs left there. Returns why there cannot be any, if so. */
  static async open(dataDir: string, mount = MOUNT): Promise<Cgroups | string> {
    const missing = await Cgroups.missing(mount);
    if (missing !== undefined) return missing;
    const folder = folderOf(dataDir, mount);
    const offered = (await readFile(join(mount, "cgroup.controllers"), "utf8")).split(/\s/);
    const on = [...NEEDED, ...(offered.includes(WELCOME) ? [WELCOME] : [])].map((name) => `+${name}`).join(" ");
    try {
      await writeFile(join(mount, "cgroup.subtree_control"), on);
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, "cgroup.subtree_control"), on);
    } catch (error) {
      return `control groups cannot be made (${messageOf(error)})`;
    }
    await removeEmpty(folder);
    return new Cgroups(folder);
  }

  /** Removes the groups of a data directory whose guests have ended. Does nothing where there are none. */
  static async uninstall(dataDir: string, mount = MOUNT): Promise<void> {
    await new Cgroups(folderOf(dataDir, mount)).close();
  }

  /** Removes what is empty; the directory itself stays while guests are running. */
  async close(): Promise<void> {
    await removeEmpty(this.#folder);
    await rmdir(this.#folder).catch(() => {}); // there is none, or a guest is still running
  }

  /** Makes a group with these settings, and returns its directory. Each VMM has its own: the one before may be ending. */
  async make(machineId: string, files: Readonly<Record<string, string>>): Promise<string> {
    await this.#endLeftovers(machineId);
    const folder = join(this.#folder, `${machineId}.${randomBytes(3).toString("hex")}`);
    await mkdir(folder, { recursive: true });
    await Promise.all(Object.entries(files).map(([name, value]) => writeFile(join(folder, name), value)));
    return folder;
  }

  /** Ends what an earlier VMM of the machine has left: one that was taken over may have hidden from the platform. */
  async #endLeftovers(machineId: string): Promise<void> {
    const names = (await readdir(this.#folder).catch(ifAbsent<string[]>([]))).filter((name) =>
      name.startsWith(`${machineId}.`),
    );
    for (const name of names)
      await writeFile(join(this.#folder, name, "cgroup.kill"), "1", { flag: "r+" }).catch(() => {}); // it is gone
  }

  /** Returns the directory of the group that a process is in, if it is one of ours. */
  async of(pid: number): Promise<string | undefined> {
    const text = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(ifEnded(""));
    const [parent, own] = (/^0::(.+)$/m.exec(text)?.[1] ?? "").split("/").slice(-2);
    return parent === basename(this.#folder) && own ? join(this.#folder, own) : undefined;
  }

  /** Removes a group whose processes have ended. The next start of the platform removes what cannot be removed now. */
  async remove(folder: string): Promise<void> {
    for (let tries = 0; tries < REMOVE_TRIES; tries += 1) {
      const left = await rmdir(folder).then(
        () => false,
        (error: NodeJS.ErrnoException) => error.code === "EBUSY",
      );
      if (!left) return;
      await delay(REMOVE_PAUSE_MS, undefined, { ref: false });
    }
  }
}
