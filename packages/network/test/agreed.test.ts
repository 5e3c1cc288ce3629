/** The hosts of a cluster have one subnet for their machines. */
import { parseSubnet } from "@hibernaut/lib/ipv4";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { chooseForAll, useSubnet } from "../src/agreed.ts";
import { readSubnets } from "../src/bridge/state.ts";

test("the first host chooses one by the cluster's id, and stays with it; those that join use it", async () => {
  const [first, second] = [await tempFolder("first"), await tempFolder("second")];
  const chosen = await chooseForAll(first, "auto", 0x1234);
  expect(parseSubnet(chosen ?? "")).toBeDefined();
  expect((await readSubnets(first)).subnet).toEqual(parseSubnet(chosen ?? ""));
  expect(await chooseForAll(first, "auto", 7), "what its machines may have").toBe(chosen);
  await useSubnet(second, chosen);
  expect((await readSubnets(second)).subnet).toEqual(parseSubnet(chosen ?? ""));
});

test("a configured subnet is the cluster's; a host that has none changes nothing", async () => {
  const folder = await tempFolder("configured");
  expect(await chooseForAll(folder, "10.99.0.0/22", 1)).toBe("10.99.0.0/22");
  await useSubnet(folder, undefined);
  expect(await readSubnets(folder)).toEqual({});
});
