/**
 * Two machines live through everything that happens to a host, one after the other: the upgrade from version 0.1, a new
 * guest bundle, another build of QEMU, and a reboot. After each step, each machine still has its memory, its writable
 * layer and its volume, or says why not with a reason that is documented.
 *
 * @module-tag again
 */
import { execFile } from "node:child_process";
import { cp, glob, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { guestsIn } from "@hibernaut/hypervisor/qemu/find-processes";
import { killProcess } from "@hibernaut/hypervisor/qemu/process";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { otherQemu } from "../../../../scripts/lib/other-qemu.mjs";
import { readSeal, writeSeal } from "../../../snapshots/src/seal.ts";
import { FirstRelease } from "../helpers/first-release.ts";
import { ALL_KEPT, documentedReason, Life } from "../helpers/life.ts";
import { PATIENT } from "../helpers/patient.ts";
import { BUNDLE, dataFolder } from "../helpers/qemu-world.ts";
import { Served } from "../helpers/served.ts";
import { tempFolder } from "../helpers/temp.ts";

const run = promisify(execFile);
const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");
const INSTALLED = "qemu-system-x86_64";
/** It takes 20 s on a quiet host. Only a fault reaches it. */
const LIMIT_MS = 600_000;
/** Undefined where the package sources have no other build: then the story has no upgrade of QEMU. */
const OTHER = otherQemu();
const NETWORK = { HIBERNAUT_NETWORK: "user" };
const TODAY = { ...NETWORK, ...PATIENT };
/** What `Served` sets for today's platform, and what `PATIENT` does, in the words of version 0.1. */
const FIRST_SETTINGS = {
  ...NETWORK,
  HIBERNAUT_BOOT_TIMEOUT_MS: "300000",
  HIBERNAUT_RESUME_TIMEOUT_MS: "120000",
  HIBERNAUT_SUSPEND_TIMEOUT_MS: "240000",
  HIBERNAUT_ACCELERATOR: "tcg",
  HIBERNAUT_LAYER_SIZE_MB: "256",
  HIBERNAUT_LOG_LEVEL: "silent",
};

/** Runs the CLI as an operator of the data directory does, and returns what it prints. */
async function hibernaut(dataDir: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, HIBERNAUT_DATA_DIR: dataDir, XDG_CONFIG_HOME: join(dataDir, "cfg") };
  return (await run(process.execPath, [CLI, ...args], { env })).stdout;
}

/** The guest bundle of the setup as a newer one: another version, in a directory of its own. */
async function newerBundle(): Promise<string> {
  const folder = join(await tempFolder("bundle"), "bundle");
  await cp(BUNDLE, folder, { recursive: true });
  const file = join(folder, "bundle.json");
  const described = JSON.parse(await readFile(file, "utf8")) as object;
  await writeFile(file, JSON.stringify({ ...described, version: "newer" }));
  return folder;
}

/** The host of a platform that is not running was booted again: what it recorded is of the boot before. */
async function rebootHost(dataDir: string): Promise<void> {
  const db = new Database(join(dataDir, "hibernaut.db"));
  const before = "UPDATE drain SET document = json_set(document, '$.bootId', 'the boot before')";
  expect(db.prepare(before).run().changes, "the drain is recorded").toBe(1);
  db.close();
  for await (const name of glob("machines/*/snapshots/*/seal.json", { cwd: dataDir })) {
    const seal = await readSeal(join(dataDir, name));
    if (seal !== undefined)
      await writeSeal(join(dataDir, name), { ...seal, file: { ...seal.file, boot_id: "the boot before" } });
  }
}

/** Ends what the story leaves of a platform when it fails on the way. */
function endFinally(platform: { stop(): Promise<void> }, dataDir: string): void {
  onTestFinished(async () => {
    await platform.stop();
    for (const left of await guestsIn(dataDir)) await killProcess(left);
  });
}

test("two machines keep what they have through upgrades and a reboot, or say what they lost", {
  timeout: LIMIT_MS,
}, async (context) => {
  if (!(await FirstRelease.isHere())) return context.skip("this clone lacks version 0.1: git fetch --unshallow");
  const release = await FirstRelease.open();
  onTestFinished(release.dispose);
  const { path: dataDir, dispose } = await dataFolder();
  onTestFinished(dispose);

  // Version 0.1 puts a machine to sleep.
  const first = await release.serve(dataDir, {
    ...FIRST_SETTINGS,
    HIBERNAUT_QEMU: OTHER ?? INSTALLED,
    HIBERNAUT_GUEST_BUNDLE: await release.bundle(),
  });
  endFinally(first, dataDir);
  const old = await Life.begin(first, "old");
  await old.suspend(first);
  await first.stop();

  // Today's platform opens its data, and wakes it. A machine of today is created.
  const now = new Served(dataDir, { ...TODAY, HIBERNAUT_QEMU: OTHER ?? INSTALLED });
  endFinally(now, dataDir);
  await now.start();
  expect(await old.look(now)).toEqual({ wake: "resume", ...ALL_KEPT });
  const young = await Life.begin(now, "young");
  // The next platform adopts the guest of 0.1, and knows what it runs on.
  await now.stop();
  await now.start();
  expect(await old.look(now)).toEqual({ wake: "running", ...ALL_KEPT });

  // A new guest bundle: one machine sleeps through it and waits for its next cold start, the other one keeps running.
  await old.suspend(now);
  await now.stop();
  const bundle = { HIBERNAUT_GUEST_BUNDLE: await newerBundle() };
  await now.start(bundle);
  await hibernaut(dataDir, "machine", "update", old.id, "--app", old.app, "--yes");
  expect((await old.machine(now)).guest_bundle).toMatchObject({ current: false, update_pending: true });
  expect(await old.look(now)).toEqual({ wake: "resume", ...ALL_KEPT });
  expect(await young.look(now)).toEqual({ wake: "running", ...ALL_KEPT });
  await young.suspend(now);
  expect(await young.look(now)).toEqual({ wake: "resume", ...ALL_KEPT });
  expect((await young.machine(now)).guest_bundle).toMatchObject({ current: false, update_pending: false });

  // Another build of QEMU. The hardware of 0.1 does not outlive it, so the platform asks before it gives the memory up.
  await old.suspend(now);
  if (OTHER !== undefined) {
    await now.stop();
    const upgraded = { ...bundle, HIBERNAUT_QEMU: INSTALLED };
    await expect(now.start(upgraded)).rejects.toThrow(/^This start would cost 1 sleeping machine its memory\. /);
    await now.start(upgraded, ["--drop-snapshots"]);
    const [event] = await now.client.listMachineEvents(old.app, old.id, { limit: 1 });
    expect(event?.type).toBe("discard_snapshot");
    expect(documentedReason(String(event?.details.reason))).toBe("hypervisor_version_changed");
    const lost = { ...ALL_KEPT, memory: "hypervisor_version_changed" };
    expect(await old.look(now)).toEqual({ wake: "cold", ...lost });
    expect((await old.machine(now)).guest_bundle).toEqual({ version: "newer", current: true, update_pending: false });
    expect(await young.look(now)).toEqual({ wake: "running", ...ALL_KEPT });
    await young.suspend(now);
    expect(await young.look(now), "in the other build").toEqual({ wake: "resume", ...ALL_KEPT });
    await old.suspend(now);
  } else await context.annotate("without an upgrade of QEMU: the package sources have only the installed build");

  // The host is drained and rebooted. What ran runs again, before anyone asks for it, and what slept sleeps.
  expect(await hibernaut(dataDir, "drain", "--suspend")).toBe("Drained: 1 machine suspended.\n");
  expect(await guestsIn(dataDir), "nothing is left for the host to kill").toEqual([]);
  await now.kill();
  await rebootHost(dataDir);
  await now.start(bundle);
  await young.reach(now, "running");
  expect((await old.machine(now)).state).toBe("suspended");
  expect(await young.look(now)).toEqual({ wake: "running", ...ALL_KEPT });
  expect(await old.look(now)).toEqual({ wake: "resume", ...ALL_KEPT });
  expect((await now.client.getHealth()).status).toBe("ok");
  for (const { app } of [old, young]) await now.client.destroyApp(app, { force: true });
});
