/** Who may run a machine: claims, the gate before each start, and what a host finds when it comes back. */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type ClusterWorld, newClusterWorld, type TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { Mortality } from "../../../platform/test/helpers/mortal.ts";
import { KEYS, type OwnerRecord } from "../../src/keys.ts";

const TIMEOUT = { timeoutMs: 5000 };
let world: ClusterWorld;

afterEach(async () => {
  await world.dispose();
});

async function ownerOf(id: string): Promise<OwnerRecord | undefined> {
  const entry = await world.directory.get(`${KEYS.machines}${id}`);
  return entry && (JSON.parse(entry.value) as OwnerRecord);
}

async function create({ platform }: TestHost, name = "one"): Promise<string> {
  const { record } = await platform.machines.create("shop", { name, config: SMALL });
  await platform.machines.wait("shop", record.id, ["running"], TIMEOUT);
  return record.id;
}

async function suspended(host: TestHost, name = "one"): Promise<string> {
  const id = await create(host, name);
  host.platform.machines.suspend("shop", id);
  await host.platform.machines.wait("shop", id, ["suspended"], TIMEOUT);
  return id;
}

/** Gives the machine to another host, as an evacuation does. */
async function give(id: string, host: string): Promise<void> {
  const entry = await world.directory.get(`${KEYS.machines}${id}`);
  if (entry === undefined) throw new Error("nobody owns it");
  const owner = JSON.parse(entry.value) as OwnerRecord;
  const value = JSON.stringify({ ...owner, host, epoch: owner.epoch + 1 });
  await world.directory.transact([{ key: entry.key, revision: entry.revision }], [{ key: entry.key, value }]);
}

const keys = async (prefix: string) => (await world.directory.list(prefix)).entries.map(({ key }) => key);

describe("a machine that is created", () => {
  test("is refused while its app is being deleted", async () => {
    world = await newClusterWorld(["a"]);
    const a = world.host("a");
    const key = `${KEYS.apps}shop`;
    const app = JSON.parse((await world.directory.get(key))?.value ?? "{}") as object;
    await world.directory.transact([], [{ key, value: JSON.stringify({ ...app, deleting: true }) }]);
    await expect(create(a)).rejects.toMatchObject({ code: "aborted" });
    expect(a.platform.machines.list("shop")).toEqual([]);
    expect(await keys(KEYS.machines)).toEqual([]);
  });

  test("is claimed with its name, its address and what it takes to start it elsewhere", async () => {
    world = await newClusterWorld(["a"]);
    const a = world.host("a");
    const id = await create(a);
    const { address, epoch } = a.platform.machines.get("shop", id).record;
    expect(epoch).toBe(1);
    expect(await ownerOf(id)).toEqual({ app: "shop", name: "one", host: "a", epoch: 1, address });
    expect(JSON.parse((await world.directory.get(`${KEYS.names}shop/one`))?.value ?? "")).toBe(id);
    expect(JSON.parse((await world.directory.get(`${KEYS.addresses}${address}`))?.value ?? "")).toBe(id);
    expect(JSON.parse((await world.directory.get(`${KEYS.configs}${id}`))?.value ?? "")).toMatchObject({
      config: SMALL,
    });
  });

  test("is refused if another host has one of the name, and leaves nothing behind", async () => {
    world = await newClusterWorld(["a", "b"]);
    const id = await create(world.host("a"));
    const b = world.host("b");
    await expect(create(b)).rejects.toMatchObject({ code: "already_exists", message: expect.stringContaining(id) });
    expect(b.platform.machines.list("shop")).toEqual([]);
    expect(b.world.store.machines.list()).toEqual([]);
    expect(await keys(KEYS.machines)).toEqual([`${KEYS.machines}${id}`]);
  });

  test("gets an address that no machine of another host has", async () => {
    world = await newClusterWorld(["a", "b"]);
    const ids = await Promise.all([create(world.host("a"), "one"), create(world.host("b"), "two")]);
    const addresses = await Promise.all(ids.map(async (id) => (await ownerOf(id))?.address));
    expect(new Set(addresses).size).toBe(2);
  });

  test("is refused while the directory is out of reach", async () => {
    world = await newClusterWorld(["a"]);
    const a = world.host("a");
    a.cut(true);
    await expect(create(a)).rejects.toMatchObject({ code: "unavailable" });
    expect(a.world.store.machines.list()).toEqual([]);
  });

  test("and destroyed gives back its name and its address", async () => {
    world = await newClusterWorld(["a", "b"]);
    const a = world.host("a");
    const id = await create(a);
    a.cut(true);
    a.platform.machines.destroy("shop", id, { force: true });
    await a.platform.machines.wait("shop", id, ["destroyed"], TIMEOUT).catch(() => {});
    a.cut(false);
    await vi.waitFor(async () => expect((await world.directory.list(KEYS.names)).entries).toEqual([]), 5000);
    expect(await keys(KEYS.addresses)).toEqual([]);
    expect(await create(world.host("b"))).not.toBe(id);
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
    const rehearsal = new Mortality();
    world = await newClusterWorld(["a", "b"], { parts: { wrap: (deps) => rehearsal.wrap(deps) } });
    await world.host("a").platform.machines.create("shop", { config: SMALL, skipLaunch: true });
    await world.dispose();
    world = await newClusterWorld(["a", "b"]);
    const a = world.host("a");
    const fatal = new Mortality(rehearsal.steps.indexOf(step), when);
    await a.restart({ wrap: (deps) => fatal.wrap(deps) });
    const created = a.platform.machines.create("shop", { name: "one", config: SMALL, skipLaunch: true });
    await Promise.race([created.catch(() => {}), fatal.death.promise]);
    expect(fatal.steps.at(-1)).toBe(step);
    await a.restart();
    const here = a.platform.machines.list("shop").map(({ record }) => [record.id, record.epoch]);
    await vi.waitFor(async () => {
      const owners = (await world.directory.list(KEYS.machines)).entries.map(({ key, value }) => [
        key.slice(KEYS.machines.length),
        (JSON.parse(value) as OwnerRecord).epoch,
      ]);
      const byId = (one: unknown[], other: unknown[]) => (String(one[0]) < String(other[0]) ? -1 : 1);
      expect(owners.toSorted(byId)).toEqual(here.toSorted(byId));
    });
    // The name is either this machine's or free, on all hosts.
    const made = here.length === 1;
    const again = world.host("b").platform.machines.create("shop", { name: "one", config: SMALL, skipLaunch: true });
    if (made) await expect(again).rejects.toMatchObject({ code: "already_exists" });
    else await again;
  });
});

describe("a start", () => {
  test("needs a lease: without one the machine sleeps on, and wakes once there is a lease again", async () => {
    world = await newClusterWorld(["a"]);
    const a = world.host("a");
    const id = await suspended(a);
    a.lease.set("lost");
    expect(() => a.platform.machines.start("shop", id)).toThrow(expect.objectContaining({ code: "unavailable" }));
    expect(a.platform.machines.get("shop", id).record.state).toBe("suspended");
    a.lease.set("live");
    a.platform.machines.start("shop", id);
    await a.platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(a.platform.machines.get("shop", id).record.lastBoot?.kind).toBe("resume");
  });

  test("within the grace is possible for what was this host's during its last lease", async () => {
    world = await newClusterWorld(["a"]);
    const a = world.host("a");
    const id = await suspended(a);
    a.cut(true);
    a.lease.set("grace");
    a.platform.machines.start("shop", id);
    await a.platform.machines.wait("shop", id, ["running"], TIMEOUT);
  });

  test("asks the directory once in each lease, and is refused without an answer", async () => {
    world = await newClusterWorld(["a"]);
    const a = world.host("a");
    const id = await suspended(a);
    a.cut(true);
    a.lease.set("live", { anew: true });
    a.platform.machines.start("shop", id);
    await a.platform.machines.wait("shop", id, ["suspended"], TIMEOUT);
    const { stateReason, snapshot } = a.platform.machines.get("shop", id).record;
    expect(stateReason).toMatch(/cannot start now: .*cluster directory/);
    expect(snapshot).not.toBeNull();
    expect(a.world.host.of(id)).toEqual([]);
  });
});

describe("a machine that another host got", () => {
  test("ends here at once while it runs, and its files wait in quarantine", async () => {
    world = await newClusterWorld(["a", "b"]);
    const a = world.host("a");
    const id = await create(a);
    await give(id, "b");
    await vi.waitFor(() => expect(a.platform.machines.list("shop")).toEqual([]), 5000);
    expect(a.world.host.of(id)).toEqual([]);
    await vi.waitFor(async () =>
      expect(await readdir(join(a.world.folder, "quarantine")).catch(() => [])).toEqual([`${id}-1`]),
    );
    expect(existsSync(join(a.world.folder, "machines", id))).toBe(false);
    const events = a.world.store.outbox.before(Number.MAX_SAFE_INTEGER, { machine: id }, 1);
    expect(events[0]).toMatchObject({ type: "machine.moved_away", data: { details: { host: "b", epoch: 2 } } });
  });

  test("while its platform was down is not adopted: its VMM ends before anything else", async () => {
    world = await newClusterWorld(["a", "b"]);
    const a = world.host("a");
    const running = await create(a, "one");
    const asleep = await suspended(a, "two");
    const kept = await suspended(a, "three");
    await a.stop();
    expect(a.world.host.of(running)).toHaveLength(1);
    await give(running, "b");
    await give(asleep, "b");
    await a.restart();
    expect(a.world.host.of(running)).toEqual([]);
    expect(a.platform.machines.list("shop").map(({ record }) => record.id)).toEqual([kept]);
    expect((await readdir(join(a.world.folder, "quarantine"))).sort()).toEqual([`${running}-1`, `${asleep}-1`].sort());
    a.platform.machines.start("shop", kept);
    await a.platform.machines.wait("shop", kept, ["running"], TIMEOUT);
  });

  test("is given up once the directory answers, if it did not when the platform started", async () => {
    world = await newClusterWorld(["a", "b"]);
    const a = world.host("a");
    const id = await suspended(a);
    await a.stop();
    await give(id, "b");
    a.cut(true);
    a.lease.set("grace");
    await a.restart();
    expect(() => a.platform.machines.start("shop", id)).toThrow(expect.objectContaining({ code: "unavailable" }));
    a.cut(false);
    a.lease.set("live", { anew: true });
    await vi.waitFor(() => expect(a.platform.machines.list("shop")).toEqual([]), 10_000);
  });
});
