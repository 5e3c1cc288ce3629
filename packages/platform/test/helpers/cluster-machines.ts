/** What tests do with the machines of several hosts. */
import { KEYS, type OwnerRecord } from "@hibernaut/cluster/keys";
import type { Entry } from "../../../cluster/src/contract.ts";
import { LostHosts } from "../../../cluster/src/evacuation/lost-hosts.ts";
import type { ClusterWorld, TestHost } from "./cluster-world.ts";
import { SMALL } from "./fake-world.ts";

const TIMEOUT = { timeoutMs: 5000 };

/** Whose the machine is, in the directory. */
export async function ownerIn({ directory }: Pick<ClusterWorld, "directory">, id: string) {
  const entry = await directory.get(`${KEYS.machines}${id}`);
  return entry && (JSON.parse(entry.value) as OwnerRecord);
}

/** What the host does about lost ones, after a grace of a minute by this clock, in milliseconds. */
export function lostHostsOf({ cluster, platform: { custody } }: TestHost, now: () => number): LostHosts {
  return new LostHosts({ cluster, custody, graceMs: 60_000, now, log: { warn: () => {}, info: () => {} } });
}

/** Gives the machine to another host, as an evacuation does. */
export async function giveTo(
  { directory }: Pick<ClusterWorld, "directory">,
  { id, host, ...more }: { id: string; host: string } & Partial<OwnerRecord>,
): Promise<void> {
  const entry = await directory.get(`${KEYS.machines}${id}`);
  if (entry === undefined) throw new Error("nobody owns it");
  const owner = JSON.parse(entry.value) as OwnerRecord;
  const value = JSON.stringify({ ...owner, host, epoch: owner.epoch + 1, ...more });
  const changes = [
    { key: entry.key, value },
    { key: `${KEYS.moves}${id}`, value: null },
  ];
  await directory.transact([{ key: entry.key, revision: entry.revision }], changes);
}

/** The directory is what it was when the backup was made, apart from which hosts are up. */
export async function restoreDirectory(
  { directory }: Pick<ClusterWorld, "directory">,
  before: readonly Entry[],
): Promise<void> {
  const kept = ({ key }: { key: string }) => !key.startsWith(KEYS.hosts);
  const gone = (await directory.list("/hib/")).entries.filter(({ key }) => !before.some((each) => each.key === key));
  await directory.transact(
    [],
    [
      ...before.filter(kept).map(({ key, value }) => ({ key, value })),
      ...gone.filter(kept).map(({ key }) => ({ key, value: null })),
    ],
  );
}

/** Creates a machine that runs and has something in its memory: the nonce. */
export async function runOn({ platform, world: { host } }: TestHost, config = SMALL) {
  const { record } = await platform.machines.create("shop", { name: "one", config });
  await platform.machines.wait("shop", record.id, ["running"], TIMEOUT);
  return { id: record.id, nonce: host.guest(record.id)?.request()?.nonce ?? "" };
}

/** Suspends a machine that runs. */
export async function putToSleep({ platform }: TestHost, id: string): Promise<void> {
  platform.machines.suspend("shop", id);
  await platform.machines.wait("shop", id, ["suspended"], TIMEOUT);
}

/** Starts the machine. Resolves with what is in its memory. */
export async function wakeOn({ platform, world: { host } }: TestHost, id: string): Promise<string | undefined> {
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["running"], TIMEOUT);
  return host.guest(id)?.request()?.nonce;
}
