/** A data directory of version 0.1, made by its own code (`make-fixture.ts`), under the present one. */
import { execFile } from "node:child_process";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { MachineConfig } from "@hibernaut/domain/config";
import { BundleStore } from "@hibernaut/guest/bundles";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FakePlatform, newWorld, startPlatform, type World } from "../helpers/fake-world.ts";
import { tempFolder } from "../helpers/temp.ts";

const FIXTURE = join(import.meta.dirname, "first-release.tar.gz");

/** What version 0.1 knew about its machines. */
interface Expected {
  sleeper: string;
  keeper: string;
  answer: { nonce: string; count: number };
  version: string;
  bundleVersion: string;
  generation: string;
  config: MachineConfig;
}

let world: World;
let platform: FakePlatform;
let expected: Expected;

const unpack = async (folder: string) => {
  await promisify(execFile)("tar", ["-xzSf", FIXTURE, "-C", folder]);
};
const record = (id: string) => platform.machines.get("shop", id).record;
const start = async (id: string) => {
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
};

beforeEach(async () => {
  world = await newWorld({ fill: unpack });
  expected = JSON.parse(await readFile(join(world.folder, "expected.json"), "utf8")) as Expected;
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

describe("the data directory of version 0.1", () => {
  test("opens with its machines, volumes and secrets, and the sleeping machine resumes", async () => {
    platform = await startPlatform(world);
    const { sleeper, keeper, answer, version, config } = expected;
    expect(record(sleeper)).toMatchObject({ state: "suspended", name: "sleeper", version, config });
    expect(record(keeper)).toMatchObject({ state: "stopped", name: "keeper" });
    const [volume] = platform.volumes.list("shop");
    expect(volume).toMatchObject({ name: "data", machineId: keeper });
    expect((await stat(join(world.folder, "volumes", volume?.id ?? "", "data.ext4"))).size).toBe(2 ** 30);

    await start(sleeper);
    expect(record(sleeper).lastBoot).toMatchObject({ kind: "resume", reason: "snapshot" });
    expect(world.host.guest(sleeper)?.request()).toEqual({ nonce: answer.nonce, count: answer.count + 1 });
    await start(keeper);
    expect(world.host.guest(keeper)?.env).toMatchObject({ TOKEN: "hunter2" });
    expect(world.host.guest(keeper)?.volumes).toHaveLength(1);
  });

  test("and a newer guest bundle: the sleeping machine resumes, and sleeps again", async () => {
    world.bundleVersion = "bundle-2";
    world.protocols.set("bundle-1", 1);
    platform = await startPlatform(world);
    const { sleeper, answer } = expected;
    for (const more of [1, 2]) {
      await start(sleeper);
      expect(world.host.guest(sleeper)?.request()).toEqual({ nonce: answer.nonce, count: answer.count + more });
      platform.machines.suspend("shop", sleeper);
      await platform.machines.wait("shop", sleeper, ["suspended"], { timeoutMs: 5000 });
    }
  });

  test("and another hypervisor: the sleeping machine starts cold, and names its reason", async () => {
    world.identity = { version: "2" };
    platform = await startPlatform(world);
    await start(expected.sleeper);
    const reason = "hypervisor_version_changed: hypervisor version was 1, is 2";
    expect(record(expected.sleeper).lastBoot).toMatchObject({ kind: "cold", reason });
  });

  test("keeps its guest bundles, whose agents count as speaking protocol 1", async () => {
    platform = await startPlatform(world);
    const built = join(await tempFolder("built"), "bundle");
    await mkdir(built);
    await writeFile(join(built, "bundle.json"), JSON.stringify({ version: "newer", protocol: 2, image: "vmlinux" }));
    const bundles = await BundleStore.open(world.folder, built);
    expect(bundles.current).toMatchObject({ version: "newer", protocol: 2 });
    const folder = join(world.folder, "bundles", expected.bundleVersion);
    expect(bundles.get(expected.bundleVersion)).toEqual({
      version: expected.bundleVersion,
      protocol: 1,
      kernel: join(folder, "vmlinuz"),
      initrd: join(folder, "initrd"),
    });
    await bundles.collect(new Set([expected.bundleVersion]));
    expect((await stat(join(folder, "vmlinuz"))).size).toBeGreaterThan(0);
  });
});
