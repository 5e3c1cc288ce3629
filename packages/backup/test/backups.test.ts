/** Online backups on the fake hypervisor: what is in them, and what is left when they fail. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, open, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { certificatesFolder } from "@hibernaut/certs";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { openStore } from "@hibernaut/store/open";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  type FakePlatform,
  newWorld,
  type PlatformParts,
  runningMachine,
  SMALL,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { Stage } from "../src/stage.ts";

const run = promisify(execFile);
const TIMEOUT = { timeoutMs: 5000 };
const MOUNTS = { mounts: [{ volume: "data", path: "/data" }] };

let world: World;
let platform: FakePlatform;

const start = async (parts: PlatformParts = {}) => {
  platform = await startPlatform(world, parts);
};
beforeEach(async () => {
  world = await newWorld();
  await start();
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

const reach = (id: string, state: MachineRecord["state"]) =>
  platform.machines.wait("shop", id, [state as never], TIMEOUT);
const suspend = async (id: string) => {
  platform.machines.suspend("shop", id);
  await reach(id, "suspended");
};

/** Makes a backup and extracts it. `during` is called after each piece. */
async function restored(during: (bytes: number) => Promise<void> | void = () => {}): Promise<string> {
  const folder = await tempFolder("restored");
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of platform.backups.create(new AbortController().signal)) {
    pieces.push(piece);
    bytes += piece.length;
    await during(bytes);
  }
  const file = join(folder, "backup.tar");
  await writeFile(file, Buffer.concat(pieces));
  const data = join(folder, "data");
  await mkdir(data);
  await run("tar", ["-C", data, "-xSf", file]);
  return data;
}

/** The machines of a restored database. */
function machinesIn(data: string): MachineRecord[] {
  const store = openStore(join(data, "hibernaut.db"));
  try {
    return store.machines.list();
  } finally {
    store.close();
  }
}

/** Starts a platform on what was restored, in a world of its own. */
async function startRestored(data: string): Promise<{ world: World; platform: FakePlatform; close(): Promise<void> }> {
  const other = await newWorld({ fill: async (folder) => void (await run("cp", ["-a", `${data}/.`, folder])) });
  const restoredPlatform = await startPlatform(other);
  const close = async () => {
    await restoredPlatform.close();
    await other.dispose();
  };
  return { world: other, platform: restoredPlatform, close };
}

describe("a backup", () => {
  test("has the managed certificates with their keys, for their owner alone", async () => {
    const folder = certificatesFolder(world.folder);
    await mkdir(folder, { mode: 0o700 });
    for (const name of ["www.example.com.pem", "account-0123.json", "half.pem.tmp"])
      await writeFile(join(folder, name), name, { mode: 0o600 });
    const data = certificatesFolder(await restored());
    expect((await readdir(data)).toSorted()).toEqual(["account-0123.json", "www.example.com.pem"]);
    expect(await readFile(join(data, "www.example.com.pem"), "utf8")).toBe("www.example.com.pem");
    expect([(await stat(data)).mode & 0o777, (await stat(join(data, "account-0123.json"))).mode & 0o777]).toEqual([
      0o700, 0o600,
    ]);
  });

  test("has a sleeping machine with its memory, which resumes where it was", async () => {
    const id = await runningMachine(platform);
    const before = world.host.guest(id)?.request();
    await suspend(id);
    const data = await restored();
    expect(platform.machines.get("shop", id).record.state, "it sleeps on").toBe("suspended");
    const copy = await startRestored(data);
    copy.platform.machines.start("shop", id);
    await copy.platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(copy.world.host.guest(id)?.request()).toEqual({ ...before, count: (before?.count ?? 0) + 1 });
    expect(copy.platform.machines.get("shop", id).record.lastBoot).toMatchObject({ kind: "resume" });
    await copy.close();
  });

  test("leaves a process that is kept for a warm start alone, and has the memory behind it", async () => {
    await platform.close();
    await start({ settings: { keepWarmS: 600 } });
    const id = await runningMachine(platform);
    const before = world.host.guest(id)?.request();
    await suspend(id);
    const data = await restored();
    platform.machines.start("shop", id);
    await reach(id, "running");
    expect(platform.machines.get("shop", id).record.lastBoot).toMatchObject({ kind: "warm" });
    expect(world.host.guest(id)?.request()?.count).toBe((before?.count ?? 0) + 1);
    const copy = await startRestored(data);
    copy.platform.machines.start("shop", id);
    await copy.platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(copy.world.host.guest(id)?.request()).toEqual({ ...before, count: (before?.count ?? 0) + 1 });
    await copy.close();
  });

  test("has a running machine as of the backup, which runs on and starts again in the restored platform", async () => {
    const id = await runningMachine(platform, MOUNTS);
    const before = world.host.guest(id)?.request();
    const data = await restored();
    expect(world.host.guest(id)?.request()?.nonce, "the same guest runs on").toBe(before?.nonce);
    expect(world.host.mostPerMachine).toBe(1);
    expect(platform.machines.get("shop", id).record).toMatchObject({ state: "running", snapshot: null });
    expect(platform.backups.get()).toMatchObject({
      state: "complete",
      machines: 1,
      machinesDone: 1,
      withoutMemory: [],
    });
    const copy = await startRestored(data);
    await copy.platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(copy.world.host.guest(id)?.request()).toEqual({ ...before, count: (before?.count ?? 0) + 1 });
    const events = copy.platform.machines.events("shop", id, 10);
    expect(events.map(({ type }) => type)).toContain("captured");
    expect(events.find(({ type }) => type === "start")?.details).toEqual({ by: "backup" });
    const said = copy.world.logged.map(({ message }) => message);
    expect(said).toContain("starting the machines that ran when they were backed up");
    expect(said).not.toContain("starting the machines that a drain suspended");
    await copy.close();
  });

  test("has only the disks of a machine that cannot be suspended, and says so", async () => {
    await platform.close();
    await start({ settings: { suspendMaxMemoryMb: 64 } });
    const id = await runningMachine(platform);
    const data = await restored();
    const [record] = machinesIn(data);
    expect(record).toMatchObject({ state: "stopped", snapshot: null, drained: true, resetLayer: false });
    expect(record?.coldReason).toMatch(/^backup_without_memory: it cannot be suspended: memory is 128 MB/);
    expect(platform.backups.get().withoutMemory).toMatchObject([{ id, app: "shop" }]);
    const copy = await startRestored(data);
    await copy.platform.machines.wait("shop", id, ["running"], TIMEOUT);
    expect(copy.platform.machines.get("shop", id).record.lastBoot).toMatchObject({
      kind: "cold",
      reason: expect.stringMatching(/^backup_without_memory: /),
    });
    await copy.close();
  });

  test("has volumes with and without a machine, their snapshots, and files that stay sparse", async () => {
    const id = await runningMachine(platform, MOUNTS);
    const free = await platform.volumes.create("shop", { name: "free" });
    await suspend(id);
    const used = platform.volumes.list("shop").find(({ machineId }) => machineId === id)?.id ?? "";
    const disk = (folder: string, volume: string) => join(folder, "volumes", volume, "data.ext4");
    await writeFile(disk(world.folder, used), "used");
    await truncate(disk(world.folder, used), 1024 ** 3);
    const snapshot = await platform.volumes.snapshot("shop", used);
    const data = await restored();
    await using copied = await open(disk(data, used));
    expect((await copied.read(Buffer.alloc(4), 0, 4, 0)).buffer.toString()).toBe("used");
    expect((await stat(disk(data, used))).blocks * 512).toBeLessThan(1024 ** 2);
    expect((await stat(disk(data, free.id))).size).toBe(1024 ** 3);
    const taken = join(data, "volumes", used, "snapshots", `${snapshot.id}.ext4`);
    expect((await stat(taken)).size).toBe(1024 ** 3);
  });

  test("has what was made, updated and destroyed before its end, and nothing twice", async () => {
    const first = await runningMachine(platform);
    await suspend(first);
    let changed = false;
    const data = await restored(async () => {
      if (changed || platform.backups.get().machinesDone === 0) return;
      changed = true;
      const { record } = await platform.machines.create("shop", { name: "late", config: { ...SMALL, ...MOUNTS } });
      await reach(record.id, "running");
      await platform.machines.update("shop", first, { ...SMALL, env: { COLOR: "blue" } });
      await reach(first, "suspended");
    });
    const machines = machinesIn(data);
    expect(machines.map(({ name }) => name)).toContain("late");
    expect(machines.find(({ id }) => id === first)?.config.env).toEqual({ COLOR: "blue" });
    const [volume] = platform.volumes.list("shop");
    expect(existsSync(join(data, "volumes", volume?.id ?? "", "data.ext4"))).toBe(true);
  });

  test("ends although machines keep being made, and its database speaks of no machine or volume that is not in it", async () => {
    const first = await runningMachine(platform);
    let made = 0;
    const data = await restored(async () => {
      // One for each machine that is copied: a backup that waited for the last one would never end.
      if (platform.backups.get().machinesDone <= made || made >= 50) return;
      made += 1;
      const { record } = await platform.machines.create("shop", { config: { ...SMALL, ...MOUNTS } });
      await reach(record.id, "running");
    });
    const machines = machinesIn(data);
    expect(made, "it ended by itself").toBeLessThan(50);
    expect(machines.length, "the last one is left to the next backup").toBeLessThan(1 + made);
    expect(machines.map(({ id }) => id)).toContain(first);
    const copied = await readdir(join(data, "machines"));
    for (const { id } of machines) expect(copied).toContain(id);
    const store = openStore(join(data, "hibernaut.db"));
    const volumes = store.volumes.list();
    store.close();
    for (const { id } of volumes) expect(existsSync(join(data, "volumes", id, "data.ext4"))).toBe(true);
    expect(volumes).toHaveLength(machines.length - 1);
  });

  test("without machines is a backup, too", async () => {
    expect(machinesIn(await restored())).toEqual([]);
  });
});

describe("while a backup is made", () => {
  test("a wake is not held up: the machine is then copied while it runs", async () => {
    const id = await runningMachine(platform);
    await suspend(id);
    // The wake arrives while the first file is copied.
    const stage = new Stage(world.folder);
    stage.clones = async () => true;
    const copyFile = stage.copyFile.bind(stage);
    vi.spyOn(stage, "copyFile").mockImplementationOnce(async (...copied) => {
      platform.machines.start("shop", id);
      await reach(id, "running");
      await copyFile(...copied);
    });
    const copy = await platform.machineCopies.copy(id, stage, new AbortController().signal);
    expect(copy).toMatchObject({ record: { state: "suspended", drained: true }, event: { from: "running" } });
    expect(platform.machines.get("shop", id).record.state).toBe("running");
    expect(world.host.guest(id)?.quiet).toBe(false);
  });

  test("another one is refused", async () => {
    await runningMachine(platform);
    let refused: unknown;
    await restored(() => {
      try {
        platform.backups.create(new AbortController().signal);
      } catch (error) {
        refused = error;
      }
    });
    expect(refused).toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(/is being made since/),
    });
  });

  test("a client that goes away leaves the machines running and no files", async () => {
    const id = await runningMachine(platform);
    const pieces = platform.backups.create(new AbortController().signal)[Symbol.asyncIterator]();
    await pieces.next();
    await pieces.return?.();
    expect(platform.backups.get()).toMatchObject({ state: "failed", error: { code: "aborted" } });
    expect(existsSync(join(world.folder, "tmp-backup"))).toBe(false);
    expect(world.host.of(id)[0]?.running).toBe(true);
    expect(machinesIn(await restored())).toHaveLength(1);
  });

  test("a guest whose state cannot be written runs on, and the backup fails with the reason", async () => {
    const id = await runningMachine(platform);
    world.host.faults.capture = Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
    await expect(restored()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/no space left.*Make sure that the disk .* has space, then back up again/),
    });
    expect(world.host.of(id)[0]?.running).toBe(true);
    expect(world.host.guest(id)?.quiet).toBe(false);
    expect(existsSync(join(world.folder, "tmp-backup"))).toBe(false);
    expect(platform.backups.get()).toMatchObject({ state: "failed", error: { code: "unavailable" } });
  });

  test("a guest that the host has paused is left alone, and the backup says why it fails", async () => {
    const id = await runningMachine(platform);
    const [process] = world.host.of(id);
    if (process === undefined) throw new Error("there is no guest");
    process.running = false;
    await expect(restored()).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/the host has paused it .* then back up again/),
    });
    expect(process.running, "nobody let it run on").toBe(false);
    process.running = true;
  });

  test("a guest that does not get ready is copied without its memory, and runs on", async () => {
    const id = await runningMachine(platform);
    const guest = world.host.guest(id);
    guest?.disconnect();
    const data = await restored();
    expect(machinesIn(data)[0]?.coldReason).toMatch(/^backup_without_memory: the guest was not ready: /);
    expect(world.host.of(id)[0]?.running).toBe(true);
  });

  test("a platform that is killed leaves a paused guest, which the next one wakes, and files, which it deletes", async () => {
    const id = await runningMachine(platform);
    const before = world.host.guest(id)?.request();
    const never = Promise.withResolvers<void>();
    world.host.hold.capture = never.promise;
    const dying = restored().catch(() => {});
    await expect.poll(() => world.host.of(id)[0]?.running).toBe(false);
    expect(existsSync(join(world.folder, "tmp-backup"))).toBe(true);
    // The dead platform's work never continues: the next one finds what is there.
    const next = await startPlatform(world);
    expect(existsSync(join(world.folder, "tmp-backup"))).toBe(false);
    expect(next.machines.get("shop", id).record.state).toBe("running");
    expect(world.host.guest(id)?.request()?.nonce).toBe(before?.nonce);
    expect(world.host.of(id)[0]?.running).toBe(true);
    expect(world.host.mostPerMachine).toBe(1);
    delete world.host.hold.capture;
    never.resolve();
    await dying;
    await next.close();
  });
});
