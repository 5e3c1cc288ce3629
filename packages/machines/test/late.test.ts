/** A platform that was halted for longer than its lease: another host may run the machine by then. */
import { HibernautError } from "@hibernaut/domain/errors";
import { expect, test } from "vitest";
import type { Ownership } from "../src/ownership.ts";
import { shopForEach } from "./shop.ts";

/** Whether the lease ends as soon as the guest of a start runs, as if the platform had been halted right before. */
let armed = false;
const late = (id: string) =>
  armed && shop.host.of(id).some(({ running }) => running)
    ? new HibernautError("unavailable", "The lease of this host has ended.")
    : undefined;
const ownership = {
  addresses: () => [],
  claim: async (record) => record,
  release() {},
  publish() {},
  readdress: async (record) => record.address,
  refusal: () => undefined,
  verify: async (id) => late(id),
  settle: async (records) => records.map((record) => ({ kind: "own", record })),
} satisfies Ownership;
const shop = shopForEach({ wrap: (deps) => ({ ...deps, ownership }) });

test.each([
  ["resumed", 0],
  ["kept warm", 300],
])("a machine that was %s too late is ended at once", async (_, keepWarmS) => {
  armed = false;
  await shop.restart({ settings: { keepWarmS } });
  const id = await shop.sleeper();
  expect(shop.host.of(id).length).toBe(keepWarmS > 0 ? 1 : 0);
  armed = true;
  shop.machines.start("shop", id);
  await shop.reach(id, "stopped");
  expect(shop.host.of(id)).toEqual([]);
  expect(shop.host.restored, "it ran, and was ended").toHaveLength(1);
  expect(shop.record(id).stateReason).toMatch("The lease of this host has ended.");
});
