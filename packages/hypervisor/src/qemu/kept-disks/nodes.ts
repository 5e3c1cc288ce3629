/**
 * QEMU's nodes that keep a disk as it is. `copy-before-write` is between the guest and the disk: before the guest overwrites
 * something, it has what was there written to `target`. Nothing of this is in the disk's file, so that nothing is lost
 * with it except what was kept: https://www.qemu.org/docs/master/interop/qemu-qmp-ref.html#object-QMP-block-core.BlockdevOptionsCbw
 */
import type { Qmp } from "../qmp.ts";
import { endProbes } from "./probe.ts";

/**
 * How long a write of the guest waits for what was there to be kept, in seconds: then that is given up, and the guest continues.
 * QEMU 7.2 computes it in 32 bits of nanoseconds, which is enough for 4 s.
 */
const GIVE_UP_S = 4;
/** QEMU names the node of a disk that was not given one. */
const OWN_NAME = /^#block(\d+)$/;
const FILTER_NAME = /^kept-filter-(\d+)$/;
/** Nodes that read what is kept, those above first: one that another one needs cannot be deleted. */
const READERS = ["kept-view-", "kept-void-", "kept-access-"];

/** A disk in QEMU. */
export interface DiskNode {
  file: string;
  /** The path of the device that the guest sees. */
  device: string;
  /** The number in the name of its node. */
  number: string;
}

interface BlockInfo {
  qdev?: string;
  inserted?: { file: string; "node-name"?: string };
}

/** Finds disks by their files. Undefined when one is not there, or is not as we attach disks. */
export async function findDisks(qmp: Qmp, files: readonly string[]): Promise<DiskNode[] | undefined> {
  const blocks = await qmp.execute<BlockInfo[]>("query-block");
  const found = files.flatMap((file): DiskNode[] => {
    const { qdev: device, inserted } = blocks.find((block) => block.inserted?.file === file) ?? {};
    const number = OWN_NAME.exec(inserted?.["node-name"] ?? "")?.[1];
    if (device === undefined || number === undefined) return [];
    return [{ file, device, number }];
  });
  return found.length === files.length ? found : undefined;
}

/** Keeps a disk of a paused guest: what it overwrites from now on is written to the export of an NBD server. */
export async function insertFilter(
  qmp: Qmp,
  { device, number }: DiskNode,
  server: { socket: string; name: string },
): Promise<void> {
  const [target, filter] = [`kept-target-${number}`, `kept-filter-${number}`];
  const at = { type: "unix", path: server.socket };
  await qmp.execute("blockdev-add", { driver: "nbd", "node-name": target, server: at, export: server.name });
  await qmp.execute("blockdev-add", {
    ...{ driver: "copy-before-write", "node-name": filter, file: `#block${number}`, target },
    ...{ "on-cbw-error": "break-snapshot", "cbw-timeout": GIVE_UP_S },
  });
  await qmp.execute("qom-set", { path: device, property: "drive", value: filter });
  // Only now: with a reader, the filter would not share the disk with the guest.
  await qmp.execute("blockdev-add", {
    ...{ driver: "snapshot-access", "node-name": `kept-access-${number}`, file: filter },
  });
}

/**
 * Takes away all that keeps disks. What writes to a server that does not answer must have lost its connection before: QEMU
 * waits for it. Safe to repeat.
 */
export async function removeFilters(qmp: Qmp): Promise<void> {
  await endProbes(qmp);
  const nodes = await qmp.execute<{ "node-name"?: string }[]>("query-named-block-nodes", { flat: true });
  const kept = nodes.map((node) => node["node-name"] ?? "");
  const remove = async (prefixes: readonly string[]) => {
    for (const prefix of prefixes)
      for (const name of kept.filter((each) => each.startsWith(prefix)))
        await qmp.execute("blockdev-del", { "node-name": name });
  };
  await remove(READERS);
  for (const { qdev, inserted } of await qmp.execute<BlockInfo[]>("query-block")) {
    const number = FILTER_NAME.exec(inserted?.["node-name"] ?? "")?.[1];
    if (qdev === undefined || number === undefined) continue;
    await qmp.execute("qom-set", { path: qdev, property: "drive", value: `#block${number}` });
  }
  await remove(["kept-filter-", "kept-target-"]);
}
