/** Who may run a machine: claims, the gate before each start, and what a host finds when it comes back. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { giveTo, ownerIn, putToSleep } from "../../../platform/test/helpers/cluster-machines.ts";
import type { ClusterWorld, TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { type ConfigRecord, KEYS } from "../../src/keys.ts";
import { LocalDirectory } from "../../src/local/directory.ts";
import { put, read } from "../../src/stored.ts";
import { create, destroy, fakeHosts, machines, move, quarantined, recordOn, TRIES, untilState } from "../fake-hosts.ts";

async function suspended(host: TestHost, name = "one"): Promise<string> {
  const id = await create(host, name);
  await putToSleep(host, id);
  return id;
}

const keys = async ({ directory }: ClusterWorld, prefix: string) =>
  (await directory.list(prefix)).entries.map(({ key }) => key);

describe("a machine that is created", () => {
  test("is refused while its app is being deleted", async () => {
    const { world, a } = await fakeHosts("a");
    const key = `${KEYS.apps}shop`;
    const app = JSON.parse((await world.directory.get(key))?.value ?? "{}") as object;
    await world.directory.transact([], [put(key, { ...app, deleting: true })]);
    await expect(create(a)).rejects.toMatchObject({ code: "aborted" });
    expect(machines(a)).toEqual([]);
    expect(await keys(world, KEYS.machines)).toEqual([]);
  });

  test("is claimed with its name, its address and what it takes to start it elsewhere", async () => {
    const { world, a } = await fakeHosts("a");
    const id = await create(a);
    const { address, epoch } = recordOn(a, id);
    expect(epoch).toBe(1);
    expect(await ownerIn(world, id)).toEqual({ app: "shop", name: "one", host: "a", epoch: 1, address });
    const stored = async (key: string) => (await read(world.directory, key))?.value;
    expect(await stored(`${KEYS.names}shop/one`)).toBe(id);
    expect(await stored(`${KEYS.addresses}${address}`)).toBe(id);
    expect(await stored(`${KEYS.configs}${id}`)).toMatchObject({ config: SMALL });
  });

  test("is refused if another host has one of the name, and leaves nothing behind", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const id = await create(a);
    await expect(create(b)).rejects.toMatchObject({ code: "already_exists", message: expect.stringContaining(id) });
    expect(machines(b)).toEqual([]);
    expect(b.world.store.machines.list()).toEqual([]);
    expect(await keys(world, KEYS.machines)).toEqual([`${KEYS.machines}${id}`]);
  });

  test("gets an address that no machine of another host has", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const ids = await Promise.all([create(a, "one"), create(b, "two")]);
    const addresses = await Promise.all(ids.map(async (id) => (await ownerIn(world, id))?.address));
    expect(new Set(addresses).size).toBe(2);
  });

  test("is refused while the directory is out of reach", async () => {
    const { a } = await fakeHosts("a");
    a.cut(true);
    await expect(create(a)).rejects.toMatchObject({ code: "unavailable" });
    expect(a.world.store.machines.list()).toEqual([]);
  });

  test("and destroyed gives back its name and its address", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const id = await create(a);
    a.cut(true);
    destroy(a, id);
    await untilState(a, id, "destroyed").catch(() => {});
    a.cut(false);
    await vi.waitFor(async () => expect(await keys(world, KEYS.names)).toEqual([]), 5000);
    expect(await keys(world, KEYS.addresses)).toEqual([]);
    expect(await create(b)).not.toBe(id);
  });
});

describe("a configuration that changes without a new version", () => {
  const known = async ({ directory }: ClusterWorld, id: string) =>
    (await read<ConfigRecord>(directory, `${KEYS.configs}${id}`))?.value.config.metadata;
  const change = ({ platform }: TestHost, id: string, build: number) =>
    platform.metadata.change("shop", id, { build: String(build) });

  test("is known elsewhere, without a write for each change, and as it was last once the platform has ended", async () => {
    const { world, a } = await fakeHosts("a");
    const id = await create(a);
    const transact = vi.spyOn(LocalDirectory.prototype, "transact");
    onTestFinished(() => transact.mockRestore());
    change(a, id, 0);
    await vi.waitFor(async () => expect(await known(world, id)).toEqual({ build: "0" }), 5000);
    for (let build = 1; build <= 100; build += 1) change(a, id, build);
    await a.stop();
    expect(await known(world, id)).toEqual({ build: "100" });
    const writes = transact.mock.calls.filter(([, changes]) => changes.some(({ key }) => key.startsWith(KEYS.configs)));
    expect(writes).toHaveLength(2);
  });

  test("is known elsewhere after the next start, if the directory was out of reach until the end", async () => {
    const { world, a } = await fakeHosts("a");
    const id = await create(a);
    a.cut(true);
    change(a, id, 7);
    await a.stop();
    expect(await known(world, id)).toBeUndefined();
    a.cut(false);
    await a.restart();
    await vi.waitFor(async () => expect(await known(world, id)).toEqual({ build: "7" }), 5000);
  });

  test("is known elsewhere if the machine moves while it waits", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const id = await suspended(a);
    change(a, id, 1);
    await vi.waitFor(async () => expect(await known(world, id)).toEqual({ build: "1" }), 5000);
    change(a, id, 2);
    await move(a, { id, to: "b" });
    expect(recordOn(b, id).config.metadata).toEqual({ build: "2" });
    await vi.waitFor(async () => expect(await known(world, id)).toEqual({ build: "2" }), TRIES);
  });
});

describe("a platform that is killed while it creates a machine", () => {
  // The three steps that change something: the intent, the claim, and the epoch that the claim gave.
  test.each(
    ["store.insert", "ownership.claim", "store.update"].flatMap((step) => [
      { step, when: "before" as const },
      { step, when: "after" as const },
    ]),
  )("$when $step completes or undoes it at the next start", async ({ step, when }) => {
    const { world, a, b } = await fakeHosts("a", "b");
    const fatal = new Mortality();
    await a.restart({ wrap: (deps) => fatal.wrap(deps) });
    fatal.arm(step, when);
    const created = a.platform.machines.create("shop", { name: "one", config: SMALL, skipLaunch: true });
    await Promise.race([created.catch(() => {}), fatal.death.promise]);
    expect(fatal.steps.at(-1)).toBe(step);
    await a.restart();
    const here = machines(a);
    await vi.waitFor(async () =>
      expect(await keys(world, KEYS.machines)).toEqual(here.map((id) => `${KEYS.machines}${id}`)),
    );
    for (const id of here) expect(recordOn(a, id).epoch).toBe((await ownerIn(world, id))?.epoch);
    // The name is either this machine's or free, on all hosts.
    const again = b.platform.machines.create("shop", { name: "one", config: SMALL, skipLaunch: true });
    if (here.length === 1) await expect(again).rejects.toMatchObject({ code: "already_exists" });
    else await again;
  });
});

describe("a start", () => {
  test("needs a lease: without one the machine sleeps on, and wakes once there is a lease again", async () => {
    const { a } = await fakeHosts("a");
    const id = await suspended(a);
    a.lease.set("lost");
    expect(() => a.platform.machines.start("shop", id)).toThrow(expect.objectContaining({ code: "unavailable" }));
    expect(recordOn(a, id).state).toBe("suspended");
    a.lease.set("live");
    a.platform.machines.start("shop", id);
    await untilState(a, id, "running");
    expect(recordOn(a, id).lastBoot?.kind).toBe("resume");
  });

  test("within the grace is possible for what was this host's during its last lease", async () => {
    const { a } = await fakeHosts("a");
    const id = await suspended(a);
    a.cut(true);
    a.lease.set("grace");
    a.platform.machines.start("shop", id);
    await untilState(a, id, "running");
  });

  test("asks the directory once in each lease, and is refused without an answer", async () => {
    const { a } = await fakeHosts("a");
    const id = await suspended(a);
    a.cut(true);
    a.lease.set("live", { anew: true });
    a.platform.machines.start("shop", id);
    await untilState(a, id, "suspended");
    const { stateReason, snapshot } = recordOn(a, id);
    expect(stateReason).toMatch(/cannot start now: .*cluster directory/);
    expect(snapshot).not.toBeNull();
    expect(a.world.host.of(id)).toEqual([]);
  });
});

describe("a machine that another host got", () => {
  test("ends here at once while it runs, and its files wait in quarantine", async () => {
    const { world, a } = await fakeHosts("a", "b");
    const id = await create(a);
    await giveTo(world, { id, host: "b" });
    await vi.waitFor(() => expect(machines(a)).toEqual([]), 5000);
    expect(a.world.host.of(id)).toEqual([]);
    await vi.waitFor(async () => expect(await quarantined(a)).toEqual([`${id}-1`]));
    expect(existsSync(join(a.world.folder, "machines", id))).toBe(false);
    const events = a.world.store.outbox.before(Number.MAX_SAFE_INTEGER, { machine: id }, 1);
    expect(events[0]).toMatchObject({ type: "machine.moved_away", data: { details: { host: "b", epoch: 2 } } });
  });

  test("while its platform was down is not adopted: its VMM ends before anything else", async () => {
    const { world, a } = await fakeHosts("a", "b");
    const running = await create(a, "one");
    const asleep = await suspended(a, "two");
    const kept = await suspended(a, "three");
    await a.stop();
    expect(a.world.host.of(running)).toHaveLength(1);
    await giveTo(world, { id: running, host: "b" });
    await giveTo(world, { id: asleep, host: "b" });
    await a.restart();
    expect(a.world.host.of(running)).toEqual([]);
    expect(machines(a)).toEqual([kept]);
    expect(await quarantined(a)).toEqual([`${running}-1`, `${asleep}-1`].toSorted());
    a.platform.machines.start("shop", kept);
    await untilState(a, kept, "running");
  });

  test("is given up once the directory answers, if it did not when the platform started", async () => {
    const { world, a } = await fakeHosts("a", "b");
    const id = await suspended(a);
    await a.stop();
    await giveTo(world, { id, host: "b" });
    a.cut(true);
    a.lease.set("grace");
    await a.restart();
    expect(() => a.platform.machines.start("shop", id)).toThrow(expect.objectContaining({ code: "unavailable" }));
    a.cut(false);
    a.lease.set("live", { anew: true });
    await vi.waitFor(() => expect(machines(a)).toEqual([]), 10_000);
  });
});
