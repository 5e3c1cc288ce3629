/** Before a platform starts that is not what took the snapshots, its operator learns what that would cost. */
import { truncate } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { identityOf, PRESENT_HARDWARE } from "../../hypervisor/src/qemu/hardware.ts";
import {
  type FakePlatform,
  newWorld,
  runningMachine,
  SMALL,
  startPlatform,
  type World,
} from "../../platform/test/helpers/fake-world.ts";
import { droppingRefusal } from "../src/unfit-snapshots.ts";

const TIMEOUT = { timeoutMs: 10_000 };

let world: World;
let platform: FakePlatform;
let id: string;

beforeEach(async () => {
  world = await newWorld();
  platform = await startPlatform(world);
  id = await runningMachine(platform);
  platform.machines.suspend("shop", id);
  await platform.machines.wait("shop", id, ["suspended"], TIMEOUT);
});
afterEach(async () => {
  await platform.close();
  await world.dispose();
});

async function restart(): Promise<void> {
  await platform.close();
  platform = await startPlatform(world);
}

const record = () => platform.machines.get("shop", id).record;

test("a platform that is what took the snapshots drops none", async () => {
  await restart();
  expect(await platform.unfitSnapshots()).toEqual([]);
});

test("after an upgrade, the machines are named with the reason, and keep their snapshots until it is undone", async () => {
  world.identity = { version: "2" };
  await restart();
  const unfit = await platform.unfitSnapshots();
  expect(unfit).toMatchObject([{ machine: { id }, reason: expect.stringMatching(/^hypervisor_version_changed: /) }]);
  const refusal = droppingRefusal(unfit);
  expect(refusal.code).toBe("failed_precondition");
  expect(refusal.message).toMatch(
    /^This start would cost 1 sleeping machine its memory\. shop\/\S+ \(\w{14}\): hypervisor_version_changed: .* is 2\. Undo .*`hibernaut serve --drop-snapshots`\.$/,
  );
  expect(record().snapshot, "to look costs nothing").not.toBeNull();
  world.identity = {};
  await restart();
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(record().lastBoot?.kind).toBe("resume");
});

test("after a security update of QEMU, and with a newer guest bundle, none is dropped", async () => {
  const qemu = (version: string) => identityOf({ version, accelerator: "tcg" }, PRESENT_HARDWARE);
  world.identity = qemu("7.2.18");
  await restart();
  platform.dropSnapshots(await platform.unfitSnapshots());
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["running"], TIMEOUT);
  platform.machines.suspend("shop", id);
  await platform.machines.wait("shop", id, ["suspended"], TIMEOUT);
  world.identity = qemu("7.2.22");
  world.bundleVersion = "bundle-2";
  await restart();
  expect(await platform.unfitSnapshots()).toEqual([]);
  world.identity = qemu("10.0.2");
  await restart();
  expect(await platform.unfitSnapshots()).toMatchObject([{ reason: expect.stringContaining("another series") }]);
});

test("with the flag, each snapshot is dropped at once, and the machine's history says why", async () => {
  world.identity = { version: "2" };
  await restart();
  platform.dropSnapshots(await platform.unfitSnapshots());
  expect(record()).toMatchObject({ state: "suspended", snapshot: null });
  expect(platform.machines.events("shop", id, 1)).toMatchObject([
    { type: "discard_snapshot", details: { reason: expect.stringMatching(/^hypervisor_version_changed: /) } },
  ]);
  expect(await platform.unfitSnapshots(), "the next start does not need the flag").toEqual([]);
  platform.machines.start("shop", id);
  await platform.machines.wait("shop", id, ["running"], TIMEOUT);
  expect(record().lastBoot).toMatchObject({ kind: "cold", reason: expect.stringMatching(/^hypervisor_version/) });
});

test("a snapshot whose files are damaged is lost already, and does not keep the platform from starting", async () => {
  const { generation = "" } = record().snapshot ?? {};
  await truncate(join(world.folder, "machines", id, "snapshots", generation, "manifest.json"), 10);
  world.identity = { version: "2" };
  await restart();
  expect(await platform.unfitSnapshots()).toEqual([]);
});

test("many machines are named up to a point", () => {
  const unfit = Array.from({ length: 12 }, (_, index) => ({
    machine: { ...SMALL, id: String(index), app: "shop", name: `web-${index}` },
    reason: "cpu_model_changed: it did",
  }));
  expect(droppingRefusal(unfit).message).toMatch(
    /12 sleeping machines.*web-9 \(9\): cpu_model_changed: it did; and 2 more\./,
  );
});
