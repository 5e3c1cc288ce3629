/** What cleanups must keep. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { TemplateRecord } from "@hibernaut/domain/template";
import type { MachineStore, TemplateStore } from "@hibernaut/store";
import { expect, test } from "vitest";
import { bundlesInUse, imagesInUse } from "../src/in-use.ts";

const records = [
  { imageDigest: "sha256:a", bundleVersion: "1", pending: null },
  { imageDigest: "sha256:a", bundleVersion: "1", pending: { imageDigest: "sha256:b", bundleVersion: "2" } },
];
const template = { machine: { imageDigest: "sha256:c", bundleVersion: "0", pending: null } };
const store = {
  machines: { list: () => records as MachineRecord[] } as Partial<MachineStore> as MachineStore,
  templates: { list: () => [template as TemplateRecord] } as Partial<TemplateStore> as TemplateStore,
};

test("images and bundles are in use by machines, by the updates they are about to get, and by templates", () => {
  expect([...imagesInUse(store)]).toEqual(["sha256:a", "sha256:b", "sha256:c"]);
  expect([...bundlesInUse(store)]).toEqual(["1", "2", "0"]);
});
