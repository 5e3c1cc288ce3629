/** What pruning may delete: nothing that a kept set refers to, and nothing at all while anything is unknown. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type FoundManifest, type Snapshot, unneeded } from "../../src/targets/garbage.ts";
import { keptSets, parseKeep } from "../../src/targets/keep.ts";
import type { Manifest } from "../../src/targets/manifest.ts";

const NOW = Date.parse("2026-11-27T12:00:00Z");
const DAY_MS = 24 * 60 * 60_000;

interface Repository {
  snapshots: Snapshot[];
  manifests: FoundManifest[];
}

const snapshot = (id: string, set: string, more: Partial<Snapshot> = {}): Snapshot => ({
  ...{ id, set, file: "x.tar", platform: "ours", isManifest: false, time: new Date(NOW - 5 * DAY_MS).toISOString() },
  ...more,
});

function manifest(set: string, at: string, pieces: readonly string[], platform = "ours"): Manifest {
  const one = { kind: "machine", name: "machine-1", bytes: 1, sha256: "", volumes: [] } as const;
  return {
    ...{ format: 1, set, platform, version: "0.1.0", host: "h", at, endedAt: at, withoutMemory: [], added: 0 },
    verified: { at, read: "sample" },
    pieces: pieces.map((id) => ({ ...one, volumes: [], snapshot: id })),
  };
}

/** Sets of one per day, each with pieces of its own and some that it shares with the one before. */
const repositories = fc
  .array(
    fc.record({ own: fc.integer({ min: 1, max: 4 }), shares: fc.boolean(), whole: fc.boolean(), ours: fc.boolean() }),
    { maxLength: 30 },
  )
  .map((days): Repository => {
    const snapshots: Snapshot[] = [];
    const manifests: FoundManifest[] = [];
    let before: string[] = [];
    for (const [day, { own, shares, whole, ours }] of days.entries()) {
      const set = `set-${day}`;
      const time = new Date(NOW - (days.length - day) * DAY_MS).toISOString();
      const platform = ours ? "ours" : "theirs";
      const pieces = Array.from({ length: own }, (_, index) => `${set}-piece-${index}`);
      snapshots.push(...pieces.map((id) => snapshot(id, set, { time, platform })));
      if (!whole) continue;
      const all = shares ? [...before, ...pieces] : pieces;
      snapshots.push(snapshot(`${set}-manifest`, set, { time, platform, isManifest: true }));
      manifests.push({ snapshot: `${set}-manifest`, manifest: manifest(set, time, all, platform) });
      before = pieces;
    }
    return { snapshots, manifests };
  });
const keeps = fc.record({ daily: fc.nat(10), weekly: fc.nat(5), monthly: fc.nat(3) });

test("what a kept set refers to stays, and so does everything of other platforms", () => {
  fc.assert(
    fc.property(repositories, keeps, ({ snapshots, manifests }, keep) => {
      const gone = new Set(unneeded({ platform: "ours", snapshots, manifests, keep, now: NOW }));
      const ours = manifests.flatMap(({ snapshot: id, manifest: one }) =>
        typeof one === "object" && one.platform === "ours" ? [{ id, at: one.at, one }] : [],
      );
      const kept = keptSets(ours, keep);
      if (ours.length > 0) expect(kept.size).toBeGreaterThan(0);
      for (const { id, one } of kept) {
        expect(gone.has(id)).toBe(false);
        for (const piece of one.pieces) expect(gone.has(piece.snapshot)).toBe(false);
      }
      for (const { id, platform } of snapshots) if (platform === "theirs") expect(gone.has(id)).toBe(false);
    }),
  );
});

test("a manifest that cannot be read, or was not, keeps everything", () => {
  fc.assert(
    fc.property(repositories, keeps, fc.nat(), fc.boolean(), ({ snapshots, manifests }, keep, which, absent) => {
      const own = manifests.filter(({ manifest: one }) => typeof one === "object" && one.platform === "ours");
      const bad = own[which % Math.max(1, own.length)];
      if (bad === undefined) return;
      const others = manifests.filter((each) => each !== bad);
      const known = absent ? others : [...others, { snapshot: bad.snapshot, manifest: "is not JSON" }];
      expect(unneeded({ platform: "ours", snapshots, manifests: known, keep, now: NOW })).toEqual([]);
    }),
  );
});

test("a set that is being written stays, and one that was left behind goes, but only once there is a good one", () => {
  const keep = parseKeep("1d");
  const recent = snapshot("recent", "b", { time: new Date(NOW - 60_000).toISOString() });
  const old = snapshot("old", "a");
  const of = (snapshots: Snapshot[], manifests: FoundManifest[]) =>
    unneeded({ platform: "ours", snapshots, manifests, keep, now: NOW });
  expect(of([recent, old], [])).toEqual([]);
  const good = snapshot("good", "c", { isManifest: true });
  const manifests = [{ snapshot: "good", manifest: manifest("c", good.time, ["piece"]) }];
  expect(of([recent, old, good, snapshot("piece", "c")], manifests)).toEqual(["old"]);
});

/** A repository with one set for each time, each of one piece. */
function dated(...times: string[]): Repository {
  const sets = times.map((at, index) => ({ at, set: `set-${index}` }));
  return {
    snapshots: sets.flatMap(({ at, set }) => [
      snapshot(`${set}-piece`, set, { time: at }),
      snapshot(`${set}-manifest`, set, { time: at, isManifest: true }),
    ]),
    manifests: sets.map(({ at, set }) => ({
      snapshot: `${set}-manifest`,
      manifest: manifest(set, at, [`${set}-piece`]),
    })),
  };
}

test("a set of a clock that was wrong takes nobody's place, and the one that was just made stays", () => {
  const keep = parseKeep("1d");
  const future = dated("2028-01-01T00:00:00Z", "2026-11-26T03:00:00Z", "2026-11-27T03:00:00Z");
  expect(unneeded({ ...future, platform: "ours", keep, now: NOW, made: "set-2" })).toEqual([
    "set-1-piece",
    "set-1-manifest",
  ]);
  // A host that starts in 1970.
  const past = dated("2026-11-26T03:00:00Z", "1970-01-01T03:00:00Z");
  expect(unneeded({ ...past, platform: "ours", keep, now: Date.parse("1970-01-01T04:00:00Z"), made: "set-1" })).toEqual(
    [],
  );
});

test("a set that has lost pieces is not taken for the one of its day", () => {
  const { snapshots, manifests } = dated("2026-11-27T03:00:00Z", "2026-11-27T09:00:00Z");
  const left = snapshots.filter(({ id }) => id !== "set-1-piece");
  expect(unneeded({ snapshots: left, manifests, platform: "ours", keep: parseKeep("1d"), now: NOW })).toEqual([]);
});

test("what a failed backup has stored goes at once when room is needed, and that of another not yet", () => {
  const { snapshots, manifests } = dated("2026-11-27T03:00:00Z");
  const time = new Date(NOW).toISOString();
  const unfinished = ["ours", "other"].map((set) => snapshot(`${set}-part`, set, { time }));
  const rule = { platform: "ours", keep: parseKeep("1d"), now: NOW, failed: "ours" };
  expect(unneeded({ snapshots: [...snapshots, ...unfinished], manifests, ...rule })).toEqual(["ours-part"]);
});
