/** Before a platform starts that is not what took the snapshots, its operator learns what that would cost. */
import { truncate } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { identityOf, PRESENT_HARDWARE } from "../../hypervisor/src/qemu/hardware.ts";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { droppingRefusal } from "../src/unfit-snapshots.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();
let id: string;
beforeEach(async () => {
  id = await shop.sleeper();
});

test("a platform that is what took the snapshots drops none", async () => {
  await shop.restart();
  expect(await shop.platform.unfitSnapshots()).toEqual([]);
});

test("after an upgrade, the machines are named with the reason, and keep their snapshots until it is undone", async () => {
  shop.world.identity = { version: "2" };
  await shop.restart();
  const unfit = await shop.platform.unfitSnapshots();
  expect(unfit).toMatchObject([{ machine: { id }, reason: expect.stringMatching(/^hypervisor_version_changed: /) }]);
  const refusal = droppingRefusal(unfit);
  expect(refusal.code).toBe("failed_precondition");
  expect(refusal.message).toMatch(
    /^This start would cost 1 sleeping machine its memory\. shop\/\S+ \(\w{14}\): hypervisor_version_changed: .* is 2\. Undo .*`hibernaut serve --drop-snapshots`\.$/,
  );
  expect(shop.record(id).snapshot, "to look costs nothing").not.toBeNull();
  shop.world.identity = {};
  await shop.restart();
  await shop.start(id);
  expect(shop.record(id).lastBoot?.kind).toBe("resume");
});

test("after a security update of QEMU, and with a newer guest bundle, none is dropped", async () => {
  const qemu = (version: string) => identityOf({ version, accelerator: "tcg" }, PRESENT_HARDWARE);
  shop.world.identity = qemu("7.2.18");
  await shop.restart();
  shop.platform.dropSnapshots(await shop.platform.unfitSnapshots());
  await shop.start(id);
  await shop.suspend(id);
  shop.world.identity = qemu("7.2.22");
  shop.world.bundleVersion = "bundle-2";
  await shop.restart();
  expect(await shop.platform.unfitSnapshots()).toEqual([]);
  shop.world.identity = qemu("10.0.2");
  await shop.restart();
  expect(await shop.platform.unfitSnapshots()).toMatchObject([{ reason: expect.stringContaining("another series") }]);
});

test("with the flag, each snapshot is dropped at once, and the machine's history says why", async () => {
  shop.world.identity = { version: "2" };
  await shop.restart();
  shop.platform.dropSnapshots(await shop.platform.unfitSnapshots());
  expect(shop.record(id)).toMatchObject({ state: "suspended", snapshot: null });
  expect(shop.machines.events("shop", id, 1)).toMatchObject([
    { type: "discard_snapshot", details: { reason: expect.stringMatching(/^hypervisor_version_changed: /) } },
  ]);
  expect(await shop.platform.unfitSnapshots(), "the next start does not need the flag").toEqual([]);
  await shop.start(id);
  expect(shop.record(id).lastBoot).toMatchObject({
    kind: "cold",
    reason: expect.stringMatching(/^hypervisor_version/),
  });
});

test("a snapshot whose files are damaged is lost already, and does not keep the platform from starting", async () => {
  const { generation = "" } = shop.record(id).snapshot ?? {};
  await truncate(join(shop.world.folder, "machines", id, "snapshots", generation, "manifest.json"), 10);
  shop.world.identity = { version: "2" };
  await shop.restart();
  expect(await shop.platform.unfitSnapshots()).toEqual([]);
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
