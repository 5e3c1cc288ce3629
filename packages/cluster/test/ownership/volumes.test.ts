/** What the cluster's directory says about the volumes of a machine that leaves a host. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { VolumeElsewhere } from "@hibernaut/machines";
import { expect, test } from "vitest";
import type { VolumeOwner } from "../../src/keys.ts";
import { volumeKey, volumesElsewhere } from "../../src/ownership/volumes.ts";

const record: Pick<MachineRecord, "app" | "config" | "pending"> = {
  app: "shop",
  pending: null,
  config: { image: "app:1", mounts: [{ volume: "vol_1", path: "/data" }] },
};

test.each<[string, VolumeOwner | undefined, VolumeElsewhere[]]>([
  ["that never moved is here", undefined, []],
  ["that came to this host is here", { host: "a", epoch: 3 }, []],
  ["that moved on is elsewhere, with its epoch there", { host: "b", epoch: 4 }, [{ id: "vol_1", epoch: 4 }]],
])("a volume %s", (_what, owner, elsewhere) => {
  const read = (key: string) => (key === volumeKey("shop", "vol_1") ? owner : undefined);
  expect(volumesElsewhere(record, "a", read)).toEqual(elsewhere);
});
