/** What cleanups must keep. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { MachineStore } from "@hibernaut/store";
import { expect, test } from "vitest";
import { bundlesInUse, imagesInUse } from "../src/in-use.ts";

const records = [
  { imageDigest: "sha256:a", bundleVersion: "1", pending: null },
  { imageDigest: "sha256:a", bundleVersion: "1", pending: { imageDigest: "sha256:b", bundleVersion: "2" } },
];
const store = { list: () => records as MachineRecord[] } as Partial<MachineStore> as MachineStore;

test("images and bundles are in use by machines, and by the updates they are about to get", () => {
  expect([...imagesInUse(store)]).toEqual(["sha256:a", "sha256:b"]);
  expect([...bundlesInUse(store)]).toEqual(["1", "2"]);
});
