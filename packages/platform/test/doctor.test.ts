import { chownSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { qemuVersion } from "@hibernaut/hypervisor/qemu/accelerator";
import { readSettings } from "@hibernaut/settings";
import { openStore } from "@hibernaut/store/open";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { identityOf, PRESENT_HARDWARE } from "../../hypervisor/src/qemu/hardware.ts";
import { checkSocketPath } from "../src/doctor/data-directory.ts";
import type { Diagnosis } from "../src/doctor/diagnosis.ts";
import { checkNode } from "../src/doctor/hypervisor.ts";
import { diagnose } from "../src/doctor.ts";
import { newWorld, runningMachine, startPlatform, type World } from "./helpers/fake-world.ts";
import { NOBODY, runAsNobody } from "./helpers/nobody.ts";
import { tempFolder } from "./helpers/temp.ts";

let folder: string;

beforeEach(async () => {
  folder = await tempFolder("doctor-test");
});
afterEach(() => {
  vi.unstubAllEnvs();
});

async function diagnoses(environment: Record<string, string>): Promise<Map<string, Diagnosis>> {
  const settings = readSettings({
    HOME: folder,
    HIBERNAUT_ACCELERATOR: "tcg",
    HIBERNAUT_DATA_DIR: join(folder, "data"),
    ...environment,
  });
  const found = new Map<string, Diagnosis>();
  for await (const diagnosis of diagnose(settings)) found.set(diagnosis.name, diagnosis);
  return found;
}

describe("a host that lacks everything", () => {
  test("gets a command for each fault, and nothing is created", async () => {
    vi.stubEnv("PATH", folder);
    const found = await diagnoses({
      HIBERNAUT_QEMU: join(folder, "no-qemu"),
      HIBERNAUT_GUEST_BUNDLE: join(folder, "no-bundle"),
    });
    for (const name of ["qemu", "skopeo", "sqfstar", "guest bundle"]) {
      expect(found.get(name), name).toMatchObject({
        status: "fail",
        fix: expect.stringMatching(/^(apt-get install -y [a-z0-9-]+|npm run setup)$/),
      });
    }
    expect(found.get("skopeo")?.found).toBe("not installed; it copies images that are not in a registry");
    expect(found.get("data directory")).toMatchObject({
      status: "ok",
      found: expect.stringContaining("will be created"),
    });
    expect(existsSync(join(folder, "data"))).toBe(false);
  });

  test("every fault and every warning has a fix or a reason", async () => {
    for (const { status, fix, found } of (await diagnoses({})).values())
      if (status !== "ok") expect(fix ?? found).not.toBe("");
  });
});

/** What a user without privileges, and without the directories of administrators on the PATH, is told. */
async function diagnosesOfNobody(dataDir: string): Promise<Diagnosis[]> {
  const src = join(import.meta.dirname, "../src");
  if (process.getuid?.() === 0) chownSync(folder, NOBODY, NOBODY);
  return runAsNobody<Diagnosis[]>({
    imports: ["doctor.ts", "../../settings/src/settings.ts", "../../hypervisor/src/qemu/accelerator.ts"].map((file) =>
      join(src, file),
    ),
    code: `
      const [{ diagnose }, { readSettings }] = modules;
      return Array.fromAsync(diagnose(readSettings(process.env)));`,
    cwd: folder,
    env: {
      PATH: "/usr/local/bin:/usr/bin:/bin",
      HIBERNAUT_DATA_DIR: dataDir,
      HIBERNAUT_ACCELERATOR: "tcg",
      HIBERNAUT_GUEST_BUNDLE: join(folder, "none"),
    },
  });
}

test("a user without root's PATH gets the same results as root", async () => {
  const found = await diagnosesOfNobody(join(folder, "data"));
  expect(found.find(({ name }) => name === "mkfs.ext4")).toMatchObject({ status: "ok" });
});

test.skipIf(process.getuid?.() !== 0)("a data directory of another user is not to be taken over", async () => {
  const theirs = join(folder, "theirs");
  mkdirSync(theirs, { mode: 0o700 });
  const found = await diagnosesOfNobody(theirs);
  expect(found.find(({ name }) => name === "data directory")).toMatchObject({
    status: "fail",
    fix: expect.stringMatching(/belongs to another user; use your own: export HIBERNAUT_DATA_DIR=/),
  });
});

describe("a data directory with a sleeping machine", () => {
  let world: World;
  let id: string;

  beforeEach(async () => {
    world = await newWorld();
    const platform = await startPlatform(world);
    id = await runningMachine(platform);
    await platform.close();
    await live("suspend");
  });
  afterEach(() => world.dispose());

  const REACHED = { suspend: "suspended", stop: "stopped", start: "running" } as const;

  /** What a platform does with the machine, one after the other. */
  async function live(...commands: (keyof typeof REACHED)[]): Promise<void> {
    const platform = await startPlatform(world);
    for (const command of commands) {
      platform.machines[command]("shop", id);
      await platform.machines.wait("shop", id, [REACHED[command]], { timeoutMs: 10_000 });
    }
    await platform.close();
  }

  test("is told what the next start would cost, and how to say that it may", async () => {
    const found = await diagnoses({ HIBERNAUT_DATA_DIR: world.folder });
    expect(found.get("snapshots")).toMatchObject({
      status: "warn",
      found: expect.stringMatching(
        new RegExp(
          `^the next start is refused, because it would cost sleeping machines their memory \\(1 of 1\\): shop/.* \\(${id}\\): `,
        ),
      ),
      fix: expect.stringContaining("hibernaut serve --drop-snapshots"),
    });
    expect(found.get("network")).toMatchObject({ status: "ok", found: expect.stringContaining("belong") });
  });

  test("is judged by the same rule as the start: another build of QEMU may resume it, unless the setting says no", async () => {
    const [series = ""] = /^\d+\.\d+/.exec(await qemuVersion("qemu-system-x86_64")) ?? [];
    world.identity = identityOf({ version: `${series}.999 (another build)`, accelerator: "tcg" }, PRESENT_HARDWARE);
    await live("stop", "start", "suspend");
    const dataDir = { HIBERNAUT_DATA_DIR: world.folder };
    expect((await diagnoses(dataDir)).get("snapshots")).toMatchObject({ status: "ok" });
    const exact = await diagnoses({ ...dataDir, HIBERNAUT_SNAPSHOT_QEMU: "exact" });
    expect(exact.get("snapshots")?.found).toContain("HIBERNAUT_SNAPSHOT_QEMU is exact");
  });

  test("is told of another network before the start", async () => {
    const subnet = { HIBERNAUT_NETWORK: "bridge", HIBERNAUT_NETWORK_SUBNET: "10.99.4.0/22" };
    const found = await diagnoses({ HIBERNAUT_DATA_DIR: world.folder, ...subnet });
    expect(found.get("snapshots")?.found).toContain("network_changed: ");
  });

  test("is told that all is well once nothing sleeps, and left as it is", async () => {
    await live("stop");
    const found = await diagnoses({ HIBERNAUT_DATA_DIR: world.folder });
    expect(found.get("snapshots")).toEqual({
      name: "snapshots",
      status: "ok",
      found: "all sleeping machines can resume (0)",
    });
  });
});

test("Node 24 is required", () => {
  expect(checkNode("20.20.2")).toMatchObject({ status: "fail", fix: "npm run setup" });
  expect(checkNode("24.0.0")).toMatchObject({ status: "ok" });
  expect(checkNode("100.0.0")).toMatchObject({ status: "ok" });
});

test("a socket's path may have 107 bytes, and a letter may have more than one", () => {
  const longest = 107 - "/run/00000000000000/capture.sock".length;
  expect(checkSocketPath(`/${"a".repeat(longest - 1)}`)).toMatchObject({ status: "ok", found: "107 of 107 bytes" });
  expect(checkSocketPath(`/${"a".repeat(longest)}`)).toMatchObject({
    status: "fail",
    fix: expect.stringContaining("HIBERNAUT_DATA_DIR"),
  });
  expect(checkSocketPath(`/${"ä".repeat(longest - 1)}`)).toMatchObject({ status: "fail" });
});

test("scheduled snapshots of volumes are mentioned where there are any, and reported with a command when late", async () => {
  const file = join(folder, "data", "hibernaut.db");
  mkdirSync(join(folder, "data"));
  const store = openStore(file);
  expect((await diagnoses({})).has("volumes")).toBe(false);
  const at = "2026-01-01T00:00:00.000Z";
  store.apps.insert({ name: "shop", createdAt: at });
  const schedule = { since: at, handledAt: null, latest: null, trouble: null };
  const made = { state: "created" as const, snapshotRetention: 5, createdAt: at };
  const volume = { id: "vol_1", app: "shop", name: "data", sizeGb: 1, ...made };
  store.volumes.insert({ ...volume, schedule });
  expect((await diagnoses({})).get("volumes")).toMatchObject({ status: "ok" });
  const trouble = { failures: 1, at, reason: "The disk is full." };
  store.volumes.update({ ...volume, schedule: { ...schedule, trouble } });
  store.close();
  expect((await diagnoses({})).get("volumes")).toEqual({
    name: "volumes",
    status: "warn",
    found: "the scheduled snapshot of 1 of 1 volumes is late: vol_1. The disk is full.",
    fix: "hibernaut volumes show vol_1 --app shop",
  });
});

test("apps that have almost all that their quotas allow are named", async () => {
  const data = join(folder, "data");
  mkdirSync(data);
  const store = openStore(join(data, "hibernaut.db"));
  for (const name of ["bank", "shop"]) store.apps.insert({ name, createdAt: new Date().toISOString() });
  store.close();
  const none = Object.fromEntries(
    ["HOSTNAMES", "CERTIFICATES", "PREVIEWS", "UPLOADS"].map((name) => [`HIBERNAUT_QUOTA_${name}`, "0"]),
  );
  expect((await diagnoses(none)).get("quotas")).toBeUndefined();
  expect((await diagnoses({ HIBERNAUT_QUOTA_MACHINES: "10" })).get("quotas")).toMatchObject({ status: "ok" });
  const world = await newWorld();
  try {
    const platform = await startPlatform(world);
    await runningMachine(platform);
    platform.quotas.set("shop", { machines: 1, running: 5 });
    await platform.close();
    expect((await diagnoses({ HIBERNAUT_DATA_DIR: world.folder })).get("quotas")).toMatchObject({
      status: "warn",
      found: "shop has 1 of 1 machines",
      fix: "hibernaut apps show shop",
    });
  } finally {
    await world.dispose();
  }
});
