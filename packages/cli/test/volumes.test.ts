/**
 * @module-tag again
 */
import { expect, test } from "vitest";
import { withOptions } from "../src/machine-config.ts";
import { SERVICE, useCli } from "./helpers.ts";

const { hibernaut, json } = useCli();

test("volumes are made, listed, shown, extended and destroyed", async () => {
  expect((await hibernaut("volumes list")).stdout).toBe("App shop has no volumes.\n");
  const { document: volume } = await json("volumes create data --size 2 --snapshot-retention 9");
  expect(volume).toMatchObject({ name: "data", size_gb: 2, snapshot_retention: 9 });
  const list = await hibernaut("volumes list");
  expect(list.stdout).toMatch(
    /^ID +NAME +SIZE +USED +MACHINE +STATE +CREATED\nvol_\w+ +data +2 GB +[\d.]+ MB +- +created +.* ago\n$/,
  );
  expect((await hibernaut(`volumes show ${volume.id}`)).stdout).toMatch(/^snapshots kept +9 d$/m);
  expect((await hibernaut(`volumes show ${volume.id}`)).stdout).toMatch(/^scheduled snapshots +off$/m);
  const updated = await hibernaut(`volumes update ${volume.id} --snapshot-retention 7 --scheduled-snapshots`);
  expect(updated.stdout).toBe(`Updated volume ${volume.id}. Snapshots: scheduled, kept for 7 days.\n`);
  expect((await hibernaut(`volumes show ${volume.id}`)).stdout).toMatch(/^scheduled snapshots +none yet$/m);
  const off = await json(`volumes update ${volume.id} --scheduled-snapshots=false`);
  expect(off.document).toMatchObject({ auto_backup_enabled: false, snapshot_retention: 7 });
  expect(await hibernaut(`volumes update ${volume.id}`)).toMatchObject({ code: 2 });
  const extended = await hibernaut(`volumes extend ${volume.id} --size 3`);
  expect(extended).toMatchObject({ code: 0, stdout: `Volume ${volume.id} now has 3 GB.\n` });
  expect(await hibernaut(`volumes extend ${volume.id}`)).toMatchObject({ code: 2 });
  const refused = await hibernaut(`volumes destroy ${volume.id}`);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toMatch(/Nothing was destroyed.*0 snapshot\(s\).*Add --yes/);
  expect(await hibernaut(`volumes destroy ${volume.id} --yes`)).toMatchObject({ code: 0 });
  expect((await json("volumes list")).document).toEqual([]);
});

test("snapshots are made, listed, restored and destroyed", async () => {
  const { document: volume } = await json("volumes create data");
  const { document: snapshot } = await json(`volumes snapshots create ${volume.id}`);
  const list = await hibernaut(`volumes snapshots list ${volume.id}`);
  expect(list.stdout).toMatch(/^ID +VOLUME +ON DISK +STATE +CREATED\nvs_\w+ +1 GB +/);
  const { document: copy } = await json(`volumes create copy --snapshot-id ${snapshot.id}`);
  expect(copy).toMatchObject({ name: "copy", size_gb: 1 });
  expect(await hibernaut(`volumes snapshots destroy ${volume.id}`)).toMatchObject({ code: 2 });
  expect(await hibernaut(`volumes snapshots copy ${volume.id}`)).toMatchObject({ code: 2 });
  expect(await hibernaut(`volumes snapshots destroy ${volume.id} ${snapshot.id}`)).toMatchObject({ code: 0 });
  expect((await json(`volumes snapshots list ${volume.id}`)).document).toEqual([]);
});

test("a machine that has a volume keeps it, and the refusal says what to do", async () => {
  const { document: volume } = await json("volumes create kept");
  const { document: machine } = await json(`machine run oci:/srv/app ${SERVICE} --volume ${volume.id}:/data`);
  expect(machine.config.mounts).toEqual([{ volume: volume.id, name: "kept", path: "/data" }]);
  const refused = await hibernaut(`volumes destroy ${volume.id} --yes`);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`it belongs to machine ${machine.id}. Destroy that machine first`);
  expect((await hibernaut(`volumes extend ${volume.id} --size 2`)).stdout).toContain(
    `hibernaut machine restart ${machine.id}`,
  );
  expect(await hibernaut(`machine run oci:/srv/app ${SERVICE} --volume data`)).toMatchObject({ code: 2 });
});

test("--volume replaces the mounts there were, and without it they stay", () => {
  const config = { image: "x", mounts: [{ volume: "vol_1", name: "old", path: "/old" }] };
  expect(withOptions(config, {})).toEqual(config);
  expect(withOptions(config, { volume: ["data:/var/lib/a:b", "logs:/logs"] }).mounts).toEqual([
    { volume: "data", path: "/var/lib/a:b" },
    { volume: "logs", path: "/logs" },
  ]);
});
