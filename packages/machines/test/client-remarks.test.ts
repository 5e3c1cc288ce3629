/** Remarks that clients cause with a request alone: what the history tells of them, however many there are. */
import type { MachineEvent } from "@hibernaut/domain/machine";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ClientRemarks, MOST_REMARKS_TOLD, REMARKS_TOLD_FOR_MS } from "../src/client-remarks.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();

const KINDS = [["signal_sent"], ["metadata_changed"], ["lease_taken", "lease_released", "lease_cleared"]];
const OTHERS = ["start", "stop", "cordoned", "egress_changed", "app_ended"];

test("of each kind, a few are told in ten minutes, all else is, and nothing hides anything of another kind", () => {
  const types = fc.constantFrom(...KINDS.flat(), ...OTHERS);
  const steps = fc.array(fc.tuple(types, fc.nat(REMARKS_TOLD_FOR_MS / 4)), { maxLength: 300 });
  fc.assert(
    fc.property(steps, (all) => {
      let now = Date.parse("2026-01-01T00:00:00Z");
      const events = all.map(([type, step]): MachineEvent => {
        now += step % 7 === 0 ? step : step % 1000; // bursts, with breaks
        return { at: new Date(now).toISOString(), type, from: "running", to: "running", details: {} };
      });
      const toldOf = (some: MachineEvent[]) => {
        const remarks = new ClientRemarks();
        return some.flatMap((event) => remarks.add(event) ?? []);
      };
      const told = toldOf(events);
      const of = (kind: string[], from: MachineEvent[]) => from.filter(({ type }) => kind.includes(type));
      expect(of(OTHERS, told)).toEqual(of(OTHERS, events));
      for (const kind of KINDS) {
        const mine = of(kind, told);
        expect(mine).toEqual(toldOf(of(kind, events)));
        for (const [index, { at, details }] of mine.entries()) {
          const next = Date.parse(mine[index + 1]?.at ?? at);
          if (details.more_from !== undefined && index + 1 < mine.length)
            expect(next).toBeGreaterThanOrEqual(Date.parse(details.more_from as string));
          const later = mine[index + 2 * MOST_REMARKS_TOLD];
          if (later !== undefined) expect(Date.parse(later.at) - Date.parse(at)).toBeGreaterThan(REMARKS_TOLD_FOR_MS);
        }
        // What is left out follows one that says so.
        const isSaid = mine.some(({ details }) => details.more_from !== undefined);
        if (mine.length < of(kind, events).length) expect(isSaid).toBe(true);
      }
    }),
  );
});

test("a client that changes metadata and leases without end leaves history and stream as they were", async () => {
  const id = await shop.create();
  const { store } = shop.world;
  const stream = () => store.outbox.before(Number.MAX_SAFE_INTEGER, { machine: id }, 1000);
  for (let change = 0; change < 200; change += 1) {
    shop.platform.metadata.change("shop", id, { build: String(change) });
    const { nonce } = shop.platform.leases.take("shop", id, { owner: "ci" });
    shop.platform.leases.release("shop", id, nonce);
  }
  expect(shop.platform.metadata.get("shop", id)).toEqual({ build: "199" });
  const [first] = shop.events(id, "create");
  expect(first).toBeDefined();
  for (const told of [shop.events(id), stream()]) expect(told.length).toBeLessThanOrEqual(1 + 2 * MOST_REMARKS_TOLD);
  expect(shop.events(id, "metadata_changed")).toHaveLength(MOST_REMARKS_TOLD);
});

test("a change of many keys is told with the first of them, and how many more", async () => {
  const id = await shop.create();
  const keys = Array.from({ length: 40 }, (_, index) => `key-${index}`);
  shop.platform.metadata.change("shop", id, Object.fromEntries(keys.map((key) => [key, "v"])));
  expect(shop.events(id, "metadata_changed")).toMatchObject([{ details: { keys: keys.slice(0, 16), more_keys: 24 } }]);
});
