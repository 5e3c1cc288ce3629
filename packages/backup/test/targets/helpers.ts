/** A platform on a fake host that backs up to real repositories of restic. */
import { execFile } from "node:child_process";
import { isAbsolute, join } from "node:path";
import { promisify } from "node:util";
import { vi } from "vitest";
import { findTool } from "../../../../scripts/lib/test-tools.mjs";
import type { MachineDependencies } from "../../../machines/src/dependencies.ts";
import { type FakePlatform, newWorld, startPlatform, type World } from "../../../platform/test/helpers/fake-world.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import type { TargetSecrets } from "../../src/targets/access.ts";
import type { NewTarget } from "../../src/targets/contract.ts";
import { Source } from "../../src/targets/restore.ts";
import type { BackupTargets } from "../../src/targets/targets.ts";
import { cheapen } from "./cheap-key.ts";

export const RESTIC = findTool("restic");
export const run = promisify(execFile);
export const patient = () => new AbortController().signal;

/** A backup of what tests have takes seconds, also on a host with other things to do. */
const LONGEST_MS = 110_000;

/** What a test may set. */
interface Parts {
  program?: string;
  verify?: "sample" | "pieces";
  now?: () => Date;
  /** What machines find in place of a network that keeps no rules. */
  network?: MachineDependencies["network"];
}

/** A platform with targets. */
export class Home {
  world!: World;
  platform!: FakePlatform;

  /** Opens a platform with nothing in it, or with what `fill` puts there. */
  static async open(parts: Parts = {}, fill?: (folder: string) => Promise<void>): Promise<Home> {
    const home = new Home();
    home.world = await newWorld(fill === undefined ? {} : { fill });
    await home.start(parts);
    return home;
  }

  /** Starts the platform, as after a restart. */
  async start({ program = RESTIC, verify = "sample", now, network }: Parts = {}): Promise<void> {
    const settings = { restic: program, backupVerify: verify };
    this.platform = await startPlatform(this.world, {
      targets: { settings, ...(now !== undefined && { now }) },
      ...(network !== undefined && { wrap: (deps) => ({ ...deps, network }) }),
    });
  }

  get targets(): BackupTargets {
    return this.platform.backupTargets;
  }

  async stop(): Promise<void> {
    await this.platform.close();
  }

  async close(): Promise<void> {
    await this.stop();
    await this.world.dispose();
  }

  /** Adds a target in a directory of its own, and returns where it is and its key. */
  async add(more: Partial<NewTarget> = {}): Promise<{ url: string; key: string }> {
    const url = more.url ?? join(await tempFolder("target"), "repository");
    const added = await this.targets.add({ name: "disk", ...more, url }, patient());
    const key = added.key ?? more.key ?? "";
    if (isAbsolute(url)) await cheapen(url, key);
    return { url, key };
  }

  /** Backs up, and returns how that ended. */
  async backUp(name = "disk") {
    await this.targets.start(name);
    const { last } = await this.ended(name);
    if (last === null) throw new Error("nothing was backed up");
    return last;
  }

  /** Checks a target, and returns what was found. */
  async check(readData: boolean, name = "disk") {
    await this.targets.startCheck(name, readData);
    return (await this.ended(name)).lastCheck;
  }

  /** Resolves with the target once nothing happens there any more. */
  async ended(name = "disk") {
    return vi.waitFor(
      async () => {
        const target = await this.targets.get(name);
        if (target.running !== null) throw new Error(`the target is still ${target.running.phase}`);
        return target;
      },
      { timeout: LONGEST_MS, interval: 10 },
    );
  }

  /** The events of the stream about backups. */
  events(): string[] {
    return this.world.store.outbox
      .after(0, 1000)
      .filter(({ type }) => type.startsWith("backup."))
      .map(({ type }) => type);
  }
}

/** Calls restic as an administrator would. */
export async function restic(url: string, key: string, ...args: string[]): Promise<string> {
  const cache = await tempFolder("restic-cache");
  const env = { ...process.env, RESTIC_REPOSITORY: url, RESTIC_PASSWORD: key, RESTIC_CACHE_DIR: cache };
  return (await run(RESTIC, args, { env, maxBuffer: 64 * 1024 * 1024 })).stdout;
}

/** Restores the newest set, or that of a choice, from the target alone. Returns the new data directory. */
export async function restore(
  { url, ...secrets }: { url: string } & TargetSecrets,
  choice: { set?: string; at?: number } = {},
): Promise<string> {
  const folder = await tempFolder("restored");
  const data = join(folder, "data");
  await run("mkdir", ["-m", "700", data]);
  const place = { program: RESTIC, folder: join(folder, "cache"), knownHosts: join(folder, "known-hosts") };
  await using source = await Source.open(url, secrets, place, patient());
  const { manifest } = await source.choose(choice, patient());
  for await (const content of source.pieces(manifest, patient())) {
    const archive = Buffer.concat(await Array.fromAsync(content));
    const done = run("tar", ["-C", data, "-xSf", "-"], { encoding: "buffer" });
    done.child.stdin?.end(archive);
    await done;
  }
  return data;
}

/** A piece with the file `disk` of a directory. */
export function volumePiece(folder: string) {
  return { kind: "volume", name: "volume-1", volumes: ["1"], folder, paths: ["disk"], immutable: false } as const;
}
