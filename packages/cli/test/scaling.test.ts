import type { Machine, Volume } from "@hibernaut/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chooseGoing, type Member } from "../src/scaling.ts";

const MB = 1024 * 1024;

function member(
  id: string,
  createdAt: string,
  volumes: { createdAt: string; usedMb: number }[] = [],
  state = "running",
) {
  return {
    machine: { id, state, created_at: createdAt } as Machine,
    volumes: volumes.map(({ createdAt: at, usedMb }) => ({ created_at: at, used_bytes: usedMb * MB }) as Volume),
  };
}

const volume = (day: string, usedMb: number) => [{ createdAt: `2026-01-${day}`, usedMb }];
const ids = (members: readonly Member[]) => members.map(({ machine }) => machine.id);

describe("who goes first", () => {
  test.each([
    ["the newest", [member("old", "2026-01-01"), member("new", "2026-01-02")], "new"],
    [
      "also when the older one sleeps",
      [member("old", "2026-01-01", [], "suspended"), member("new", "2026-01-02")],
      "new",
    ],
    ["a failed one before all others", [member("old", "2026-01-01", [], "failed"), member("new", "2026-01-02")], "old"],
    ["the one without a volume", [member("old", "2026-01-01"), member("new", "2026-01-02", volume("02", 1))], "old"],
    [
      "the one with the newer volume, whatever state the other is in",
      [member("a", "2026-01-01", volume("01", 40), "failed"), member("b", "2026-01-02", volume("02", 45))],
      "b",
    ],
    [
      "the one with the newer volume, also when its machine is older",
      [member("a", "2026-01-01", volume("03", 40)), member("b", "2026-01-02", volume("02", 40))],
      "a",
    ],
    [
      "the one whose volume holds far less",
      [member("a", "2026-01-01", volume("01", 10)), member("b", "2026-01-02", volume("02", 900))],
      "a",
    ],
  ])("%s", (_name, members, expected) => {
    expect(ids(chooseGoing(members, 1))).toEqual([expected]);
    expect(ids(chooseGoing(members.toReversed(), 1))).toEqual([expected]);
  });

  test("nobody, where none is too many", () => {
    expect(chooseGoing([member("a", "2026-01-01")], 0)).toEqual([]);
    expect(chooseGoing([member("a", "2026-01-01")], -2)).toEqual([]);
  });
});

const day = fc.integer({ min: 1, max: 9 }).map((number) => `2026-01-0${number}`);
const anyMember = fc
  .record({
    id: fc.uuid(),
    createdAt: day,
    volumes: fc.array(fc.record({ createdAt: day, usedMb: fc.integer({ min: 0, max: 4000 }) }), { maxLength: 2 }),
    state: fc.constantFrom("running", "suspended", "stopped", "failed"),
  })
  .map(({ id, createdAt, volumes, state }) => member(id, createdAt, volumes, state));

const used = ({ volumes }: Member) => volumes.reduce((sum, { used_bytes: bytes }) => sum + bytes, 0);
const since = ({ volumes }: Member) => volumes.map(({ created_at: at }) => at).sort()[0] ?? "9999";

test("never goes an older and fuller volume before a newer and emptier one, nor any before none", () => {
  fc.assert(
    fc.property(fc.array(anyMember, { maxLength: 8 }), fc.nat(8), (members, count) => {
      const going = chooseGoing(members, count);
      const staying = members.filter((one) => !going.includes(one));
      expect(going.length).toBe(Math.min(count, members.length));
      for (const gone of going) {
        for (const kept of staying) {
          if (gone.volumes.length > 0) expect(kept.volumes.length).toBeGreaterThan(0);
          if (gone.volumes.length === 0 || since(gone) === since(kept) || used(gone) === used(kept)) continue;
          expect(since(gone) < since(kept) && used(gone) > used(kept)).toBe(false);
        }
      }
    }),
  );
});
