/**
 * Everything that ends a backup in the middle: nothing of it ever counts, it is told, and the next one works.
 *
 * @module-tag again
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { runningMachine } from "../../../platform/test/helpers/fake-world.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { openAccess } from "../../src/targets/access.ts";
import { parseLocation } from "../../src/targets/location.ts";
import { Repository } from "../../src/targets/repository.ts";
import { setsOf } from "../../src/targets/sets.ts";
import { Home, patient, RESTIC, restic, restore, run } from "./helpers.ts";

let home: Home;

beforeEach(async () => {
  home = await Home.open();
});
afterEach(() => home.close());

/** A repository without a platform. */
async function bareRepository() {
  const folder = await tempFolder("bare");
  const url = join(folder, "repository");
  const place = { program: RESTIC, folder: join(folder, "work"), knownHosts: join(folder, "hosts") };
  const { access } = await openAccess(parseLocation(url), { key: "a key for the tests" }, place);
  const repository = new Repository(access);
  await repository.create(patient());
  return { repository, url, key: "a key for the tests" };
}

const identity = { set: "s", platform: "p", kind: "piece", file: "piece.tar" } as const;
const locks = async (url: string) => readdir(join(url, "locks"));
const MEGABYTE = Buffer.alloc(1024 * 1024, 7);

/** The restic that is fed, of this test alone: its repository is in the environment. */
async function resticsOf(url: string): Promise<number[]> {
  const found: number[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (!words.includes("backup\0") || !words.startsWith(RESTIC)) continue;
    if ((await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "")).includes(`RESTIC_REPOSITORY=${url}\0`))
      found.push(Number(pid));
  }
  return found;
}

describe("a piece that is cut short", () => {
  test("by its source is not stored, and leaves no lock", async () => {
    const { repository, url } = await bareRepository();
    async function* source() {
      yield MEGABYTE;
      await vi.waitFor(async () => expect(await locks(url)).toHaveLength(1), { timeout: 30_000 });
      throw new Error("the disk does not answer");
    }
    const storing = repository.store({ ...identity, source: source(), signal: patient() });
    await expect(storing).rejects.toThrow("the disk does not answer");
    expect(await repository.snapshots(patient())).toEqual([]);
    expect(await locks(url)).toEqual([]);
  });

  test("by the death of restic is an error, and its lock does not stop the next one", async () => {
    const { repository, url } = await bareRepository();
    async function* source() {
      yield MEGABYTE;
      await vi.waitFor(async () => expect(await locks(url)).toHaveLength(1), { timeout: 30_000 });
      for (const pid of await resticsOf(url)) process.kill(pid, "SIGKILL");
      for (let count = 0; count < 100; count += 1) yield MEGABYTE;
    }
    await expect(repository.store({ ...identity, source: source(), signal: patient() })).rejects.toThrow();
    expect(await repository.snapshots(patient())).toEqual([]);
    expect(await locks(url)).toHaveLength(1);
    await repository.removeStaleLocks(patient());
    expect(await locks(url)).toEqual([]);
  });

  test("by someone who cancels is not stored", async () => {
    const { repository, url } = await bareRepository();
    const cancel = new AbortController();
    async function* source() {
      yield MEGABYTE;
      await vi.waitFor(async () => expect(await locks(url)).toHaveLength(1), { timeout: 30_000 });
      cancel.abort(new Error("no longer wanted"));
      yield MEGABYTE;
    }
    await expect(repository.store({ ...identity, source: source(), signal: cancel.signal })).rejects.toThrow(
      "no longer wanted",
    );
    expect(await repository.snapshots(patient())).toEqual([]);
    expect(await resticsOf(url)).toEqual([]);
  });

  test("to nothing is an error", async () => {
    const { repository } = await bareRepository();
    async function* source(): AsyncGenerator<Buffer, void> {
      yield* [];
    }
    await expect(repository.store({ ...identity, source: source(), signal: patient() })).rejects.toThrow(/is empty/);
    expect(await repository.snapshots(patient())).toEqual([]);
  });
});

test("a platform that is killed takes restic with it, and what was sent so far is never a backup", async () => {
  const { repository, url, key } = await bareRepository();
  const program = join(import.meta.dirname, "orphan.ts");
  const doomed = spawn(process.execPath, [program, url, key, join(url, "../work"), RESTIC], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(doomed.stdout, "data");
  await vi.waitFor(async () => expect(await resticsOf(url)).toHaveLength(1), { timeout: 30_000 });
  doomed.kill("SIGKILL");
  await once(doomed, "exit");
  await vi.waitFor(async () => expect(await resticsOf(url)).toEqual([]), { timeout: 30_000 });
  await repository.removeStaleLocks(patient());
  const snapshots = await repository.snapshots(patient());
  expect(snapshots.filter(({ isManifest }) => isManifest)).toEqual([]);
  const sets = setsOf(snapshots, await repository.manifests(snapshots, patient()), "p");
  expect(sets.filter(({ state }) => state === "complete")).toEqual([]);
});

describe("a backup that was not finished", () => {
  test("does not count, is told, and is followed by one that does", async () => {
    await runningMachine(home.platform);
    const target = await home.add();
    await home.targets.start("disk");
    await vi.waitFor(
      async () => expect(JSON.parse(await restic(target.url, target.key, "snapshots", "--json"))).not.toEqual([]),
      {
        timeout: 60_000,
      },
    );
    await home.targets.cancel("disk");
    expect(await home.targets.sets("disk", patient())).toMatchObject([{ state: "incomplete", own: true }]);
    await expect(restore(target)).rejects.toMatchObject({ code: "not_found" });
    expect(await home.backUp()).toMatchObject({ state: "complete" });
    const sets = await home.targets.sets("disk", patient());
    expect(sets.map(({ state }) => state)).toEqual(["complete", "incomplete"]);
    expect(home.events()).toEqual(["backup.canceled", "backup.complete"]);
  });

  test("because the platform was killed is told by the next one", async () => {
    await home.add();
    await home.stop();
    const running = join(home.world.folder, "backup-cache", "running.json");
    await writeFile(running, JSON.stringify({ target: "disk", at: "2026-11-27T03:00:00.000Z" }));
    await home.start();
    expect((await home.targets.get("disk")).last).toMatchObject({ state: "failed", error: { code: "aborted" } });
    expect(home.events()).toEqual(["backup.failed"]);
  });

  test("because the target is gone says so, and counts as a failure", async () => {
    const target = await home.add();
    await run("mv", [target.url, `${target.url}-elsewhere`]);
    expect(await home.backUp()).toMatchObject({
      state: "failed",
      error: { code: "failed_precondition", message: expect.stringMatching(/no repository .* has to be mounted/) },
    });
    expect(await readdir(join(target.url, "..")), "nothing was made in its place").not.toContain("repository");
    expect(await home.targets.get("disk")).toMatchObject({ failures: 1, lastSuccess: null });
  });
});

test("a damaged pack is found by a check, and by the next backup before it counts", async () => {
  await runningMachine(home.platform);
  const target = await home.add();
  await home.backUp();
  const packs = join(target.url, "data");
  for (const name of await readdir(packs, { recursive: true })) {
    const file = join(packs, name);
    if (!(await stat(file)).isFile()) continue;
    const bytes = await readFile(file);
    const middle = Math.floor(bytes.length / 3);
    bytes.writeUInt8(bytes.readUInt8(middle) ^ 0xff, middle);
    await chmod(file, 0o600);
    await writeFile(file, bytes);
  }
  expect(await home.check(true)).toMatchObject({
    readData: true,
    error: { code: "failed_precondition", message: expect.stringMatching(/is damaged/) },
  });
  expect(home.events()).toContain("backup.check_failed");
  expect(await home.backUp()).toMatchObject({
    state: "failed",
    error: { message: expect.stringMatching(/is damaged/) },
  });
  await expect(restore(target)).rejects.toThrow();
});

test("old backups are deleted with what only they need, and the rest is still there", async () => {
  const days = ["2026-11-25", "2026-11-26", "2026-11-27"];
  const target = await home.add({ keep: "2d" });
  for (const day of days) {
    home.platform.apps.create(`app-${day}`);
    await home.stop();
    await home.start({ now: () => new Date(`${day}T03:00:00Z`) });
    expect(await home.backUp()).toMatchObject({ state: "complete" });
  }
  const sets = await home.targets.sets("disk", patient());
  expect(sets.map(({ at }) => at.slice(0, 10))).toEqual(["2026-11-27", "2026-11-26"]);
  expect((await home.targets.get("disk")).pruneError).toBe(null);
  expect(await home.check(true)).toMatchObject({ error: null });
  expect(await readdir(await restore(target, { at: Date.parse("2026-11-26T12:00:00Z") }))).toContain("hibernaut.db");
});

test("a backup that is overdue is told once", async () => {
  await home.add({ schedule: "0 3 * * *" });
  await home.stop();
  await home.start({ now: () => new Date(Date.now() + 3 * 24 * 60 * 60_000) });
  expect(await home.targets.look()).toEqual(["disk"]);
  await home.targets.look();
  expect(home.events()).toEqual(["backup.overdue"]);
  expect(await home.targets.get("disk")).toMatchObject({ overdue: true });
});
