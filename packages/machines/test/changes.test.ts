/** The order in which the parts of the platform hear of a change. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import { expect, test } from "vitest";
import { CHANGE_PHASES, MachineChanges } from "../src/changes.ts";

const record = { id: "m" } as MachineRecord;

test("listeners are told phase by phase, in whatever order they subscribed", () => {
  const changes = new MachineChanges();
  const told: string[] = [];
  for (const phase of CHANGE_PHASES.toReversed())
    for (const name of ["a", "b"]) changes.subscribe(phase, ({ id }) => told.push(`${phase} ${name} ${id}`));
  changes.publish(record);
  expect(told).toEqual(["health a m", "health b m", "routing a m", "routing b m", "waiting a m", "waiting b m"]);
});

test("a listener that has unsubscribed is not told", () => {
  const changes = new MachineChanges();
  const told: string[] = [];
  const unsubscribe = changes.subscribe("routing", () => told.push("routing"));
  changes.subscribe("waiting", () => told.push("waiting"));
  unsubscribe();
  changes.publish(record);
  expect(told).toEqual(["waiting"]);
});
