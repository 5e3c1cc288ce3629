/** Which volumes of a machine that leaves a host leave with it. */
import { expect, test } from "vitest";
import type { VolumeOwner } from "../../../src/cluster/keys.ts";
import { goneVolumes, volumeKey } from "../../../src/cluster/ownership/volumes.ts";
import type { MachineRecord } from "../../../src/domain/machine.ts";

const record = {
  id: "m1",
  app: "shop",
  epoch: 3,
  pending: null,
  config: { image: "app:1", mounts: [{ volume: "vol_1", path: "/data" }] },
} as unknown as MachineRecord;

test.each<[string, VolumeOwner | undefined, string[]]>([
  ["that never moved stays", undefined, []],
  ["that came to this host stays", { host: "a", machine: "m1", epoch: 3 }, []],
  ["that moved on is gone", { host: "b", machine: "m1", epoch: 4 }, ["vol_1"]],
  ["that moved on with another machine is gone", { host: "c", machine: "m2", epoch: 2 }, ["vol_1"]],
  ["of which a restored directory has an older move stays", { host: "b", machine: "m1", epoch: 2 }, []],
])("a volume %s", (_what, owner, gone) => {
  expect(goneVolumes(record, "a", (key) => (key === volumeKey("shop", "vol_1") ? owner : undefined))).toEqual(gone);
});
