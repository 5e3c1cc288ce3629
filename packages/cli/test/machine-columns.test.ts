/** Which columns lists of machines have. */
import type { Machine } from "@hibernaut/client";
import { expect, test } from "vitest";
import { placeOf } from "../src/machine-columns.ts";

test("a list says on which hosts machines are in a cluster, and in which region elsewhere", () => {
  const one = { region: "local" } as Machine;
  const { title, cell } = placeOf([one]);
  expect([title, cell(one)]).toEqual(["REGION", "local"]);
  const other = { region: "local", host: "b" } as Machine;
  const place = placeOf([other]);
  expect([place.title, place.cell(other)]).toEqual(["HOST", "b"]);
});
