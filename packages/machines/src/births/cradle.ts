/** The files of one machine that is about to be born, or to be restored. */
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isThere } from "@hibernaut/lib/absence";
import { copySparseUntilAborted, RESERVE_TIMEOUT_MS, reserve } from "@hibernaut/lib/disk-files";
import { flush } from "@hibernaut/lib/durable";
import type { MachineDependencies } from "../dependencies.ts";
import { wayOfMemory } from "./memory-way.ts";
import { generationIn, type Seed } from "./seed.ts";

/**
 * Puts the seed's files together for one machine, whose memory is that generation; without one, it gets the disk alone. Durable
 * once this resolves. When it rejects, nothing is written any more.
 */
export async function fillCradle(
  { deps }: { deps: Pick<MachineDependencies, "files" | "snapshots" | "hypervisor"> },
  { folder, record: parent }: Seed,
  { id, version, generation }: Pick<MachineRecord, "id" | "version"> & { generation: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { seeds } = deps.files;
  const cradle = seeds.cradle(id);
  await mkdir(cradle, { recursive: true, mode: 0o700 });
  const copy = (from: string, to: string) => copySparseUntilAborted(from, to, signal);
  const copyOne = async (name: string) => {
    if (!(await isThere(join(folder, name)))) return;
    await copy(join(folder, name), join(cradle, name));
    await flush(join(cradle, name));
  };
  if (generation === undefined) {
    await copyOne("layer.ext4");
    await flush(cradle);
    return seeds.flushCradles();
  }
  const heir = { machineId: id, machineVersion: version };
  const [from, to] = [generationIn(folder, parent), join(cradle, "snapshots", generation)];
  const way = wayOfMemory({ borrows: await deps.hypervisor.borrows(), clones: await seeds.clones() });
  const own = async (source: string, target: string) => {
    await copy(source, target);
    // A wake would do it while a request waits. Where files share their blocks, it would take the room of a whole memory.
    if (way === "copy" && target === deps.snapshots.memoryOf(to)) await reserveAll(target);
  };
  const shared = way === "share";
  await all([
    copyOne("layer.ext4"),
    copyOne("hot-pages.json"),
    deps.snapshots.inherit({ from, to, heir, copy: own, shared }),
  ]);
  await flush(join(cradle, "snapshots"));
  await flush(cradle);
  await seeds.flushCradles();
}

/** Waits for all of them, whatever becomes of one. Rejects with the first reason. */
async function all(work: Promise<void>[]): Promise<void> {
  for (const one of await Promise.allSettled(work)) if (one.status === "rejected") throw one.reason;
}

async function reserveAll(file: string): Promise<void> {
  await reserve(file, (await stat(file)).size, { timeoutMs: RESERVE_TIMEOUT_MS });
}
