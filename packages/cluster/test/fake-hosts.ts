/** Hosts of a cluster in one process, on fake hypervisors, and what tests of moves and ownership do and look at there. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { expect, onTestFinished, vi } from "vitest";
import { ownerIn, putToSleep, runOn } from "../../platform/test/helpers/cluster-machines.ts";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../platform/test/helpers/mortal.ts";
import type { OwnerRecord } from "../src/keys.ts";
import { FRAMES, frame } from "../src/moves/frames.ts";
import { announce } from "../src/moves/intent.ts";
import { filesOf, pack } from "../src/moves/pack.ts";
import type { MoveOptions } from "../src/moves/source.ts";

/** Only a fault reaches it. */
export const TIMEOUT = { timeoutMs: 5000 };
/** For what waits for the next try of a host, which is seconds away. */
export const TRIES = { timeout: 20_000, interval: 50 };
export const WITH_DATA = { ...SMALL, mounts: [{ volume: "data", path: "/data" }] };
export const RECREATE = { ...SMALL, on_host_loss: "recreate" } as const;
export const WITH_VOLUMES = { cold: false, withVolumes: true };

/** Starts hosts of these names, until the test ends. */
export async function fakeHosts<Name extends string>(
  ...names: Name[]
): Promise<{ world: ClusterWorld } & Record<Name, TestHost>> {
  const world = await newClusterWorld(names);
  onTestFinished(() => world.dispose());
  const hosts = Object.fromEntries(names.map((name) => [name, world.host(name)])) as Record<Name, TestHost>;
  return { world, ...hosts };
}

/** What the host stores. */
export const machines = ({ platform }: TestHost) => platform.machines.list("shop").map(({ record }) => record.id);
export const volumes = ({ platform }: TestHost) => platform.volumes.list("shop").map(({ id }) => id);
export const recordOn = ({ platform }: TestHost, id: string) => platform.machines.get("shop", id).record;
export const disputes = ({ ownership }: TestHost) => ownership.disputes.list();

const filesIn =
  (folder: string) =>
  async ({ world }: TestHost) =>
    (await readdir(join(world.folder, folder)).catch((): string[] => [])).toSorted();
export const quarantined = filesIn("quarantine");
export const arriving = filesIn("incoming");

/** Asks the machine's guest, which counts. Undefined when it does not run on the host. */
export const ask = ({ world: { host } }: TestHost, id: string) => host.guest(id)?.request();

export const stateOn = (host: TestHost, id: string) => recordOn(host, id).state;

export const destroy = ({ platform }: TestHost, id: string) => platform.machines.destroy("shop", id, { force: true });

export const untilState = async (
  host: TestHost,
  id: string,
  state: "running" | "stopped" | "suspended" | "destroyed",
) => host.platform.machines.wait("shop", id, [state], TIMEOUT);

export const untilOwner = (world: ClusterWorld, id: string, owner: Partial<OwnerRecord>) =>
  vi.waitFor(async () => expect(await ownerIn(world, id)).toMatchObject(owner), TRIES);

export const untilSettled = (host: TestHost) => vi.waitFor(() => expect(disputes(host)).toEqual([]), TRIES);

/** Creates a machine that runs. Resolves with its id. */
export async function create({ platform }: TestHost, name = "one", config = SMALL): Promise<string> {
  const { record } = await platform.machines.create("shop", { name, config });
  await platform.machines.wait("shop", record.id, ["running"], TIMEOUT);
  return record.id;
}

/** Creates a machine that sleeps with something in its memory: the nonce. */
export async function asleep(host: TestHost, config = SMALL): Promise<{ id: string; nonce: string }> {
  const machine = await runOn(host, config);
  await putToSleep(host, machine.id);
  return machine;
}

/** Ends all guests of the host, as a power cut does. */
export function endGuests({ world: { host } }: TestHost): void {
  for (const { ref } of [...host.processes.values()]) host.end(ref);
}

/** What an evacuation notes with the new owner. */
export const evacuatedFrom = (from: string, ran = false) => ({ from, at: new Date().toISOString(), ran });

/** Moves a machine, with its memory unless the options say otherwise. */
export function move(
  from: TestHost,
  { id, to, signal = never(), ...options }: Partial<MoveOptions> & { id: string; to: string; signal?: AbortSignal },
): Promise<void> {
  return from.moves.source.move(id, { to, cold: false, ...options }, signal);
}

/**
 * Starts the host's platform again, and kills it before it takes a step of this work. Resolves once it is dead, or the work
 * has ended.
 */
export async function killBefore(host: TestHost, step: string, work: () => Promise<unknown>) {
  const mortality = new Mortality();
  await host.restart({ mortality });
  mortality.arm(step, "before");
  const ended = work().catch(() => {});
  await Promise.race([mortality.death.promise, ended]);
  return { ended };
}

export const backupOf = async ({ directory }: ClusterWorld) => (await directory.list("/hib/")).entries;

/**
 * A machine that moved from host a to host b, while a was killed before it gave up its own copy; and a backup of the directory
 * from before.
 */
export async function movedWithAnOldCopy(world: ClusterWorld, config = SMALL) {
  const a = world.host("a");
  const machine = await asleep(a, config);
  const before = await backupOf(world);
  await killBefore(a, "custody.takeAway", () => move(a, { id: machine.id, to: "b", ...WITH_VOLUMES }));
  await vi.waitFor(() => expect(machines(world.host("b"))).toEqual([machine.id]), TRIES);
  return { ...machine, before };
}

interface ByHand {
  /** What the papers say of it. Default: what it is. */
  state?: "running" | "starting" | "restarting";
  /** How many of its files are left out. */
  missing?: number;
  /** Resolves when the end may be sent. */
  beforeEnd?: Promise<void>;
}

/** Sends a sleeping machine from host a to host b as a platform does, or not quite. Resolves when b has taken it in. */
export async function sendByHand(
  { host, directory }: ClusterWorld,
  id: string,
  { state, missing = 0, beforeEnd }: ByHand = {},
): Promise<void> {
  const stored = recordOn(host("a"), id);
  const record = { ...stored, state: state ?? stored.state };
  const papers = { record, taken: null, from: "a", epoch: 1, attempt: "one", history: [], volumes: [] };
  await announce(id, { from: "a", to: "b", attempt: "one", startedAt: new Date().toISOString() }, directory);
  const folder = join(host("a").world.folder, "machines", id);
  const { paths } = await filesOf(folder, record);
  async function* stream() {
    yield frame(FRAMES.papers, Buffer.from(JSON.stringify(papers)));
    const parts = [{ folder, paths: paths.slice(missing) }];
    for await (const piece of pack(parts, { signal: never(), onBytes: () => {} })) yield frame(FRAMES.data, piece);
    await beforeEnd;
    yield frame(FRAMES.end, Buffer.from(JSON.stringify({ files: paths.length })));
  }
  await host("b").moves.target.receive(id, stream(), never());
}
