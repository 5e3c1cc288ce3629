/** Which set a restore takes when the newest one is broken, and what it says about that. */
import { describe, expect, test } from "vitest";
import { type Choice, chooseSet } from "../../src/targets/choose.ts";
import type { FoundManifest, Snapshot } from "../../src/targets/garbage.ts";
import type { Manifest } from "../../src/targets/manifest.ts";

interface Night {
  day: string;
  platform?: string;
  /** What befell it since. */
  broken?: "lost a piece" | "unreadable" | "not finished";
}

/** A target after some nights, each with one set. */
function target(...nights: Night[]) {
  const snapshots: Snapshot[] = [];
  const found: FoundManifest[] = [];
  for (const { day, platform = "ours", broken } of nights) {
    const [set, at] = [`set-${day}`, `2026-11-${day}T03:00:00.000Z`];
    const piece: Snapshot = {
      ...{ id: `${set}-piece`, set, platform, time: `2026-11-${day}T03:00:05.000Z`, file: "database.tar" },
      isManifest: false,
    };
    if (broken !== "lost a piece") snapshots.push(piece);
    if (broken === "not finished") continue;
    const stored = { ...piece, id: `${set}-manifest`, time: `2026-11-${day}T05:00:00.000Z`, isManifest: true };
    snapshots.push(stored);
    const manifest = manifestOf(set, at, platform, piece.id);
    found.push({ snapshot: stored.id, manifest: broken === "unreadable" ? "cannot be read: it is damaged" : manifest });
  }
  return (choice: Choice = {}) => chooseSet(snapshots, found, choice);
}

function manifestOf(set: string, at: string, platform: string, snapshot: string): Manifest {
  return {
    ...{ format: 1, set, platform, version: "0.1.0", host: "h", at, endedAt: at, withoutMemory: [], added: 0 },
    verified: { at, read: "sample" },
    pieces: [{ kind: "database", name: "database", snapshot, bytes: 1, sha256: "", volumes: [] }],
  };
}

describe("a restore", () => {
  test("takes the newest set, and has nothing to say about older broken ones", () => {
    const chosen = target({ day: "25", broken: "unreadable" }, { day: "26" }, { day: "27" })();
    expect(chosen).toMatchObject({ manifest: { set: "set-27" }, passedOver: [] });
  });

  test.each([
    ["lost a piece", "unreadable", /its pieces are gone, such as database/],
    ["unreadable", "unreadable", /its manifest cannot be read: it is damaged/],
    ["not finished", "incomplete", /not finished/],
  ] as const)("names the newest set when it is passed over because it is %s", (broken, state, reason) => {
    const { manifest, passedOver } = target({ day: "25" }, { day: "26" }, { day: "27", broken })();
    expect(manifest.set).toBe("set-26");
    expect(passedOver).toMatchObject([{ set: "set-27", state, reason: expect.stringMatching(reason) }]);
  });

  test("of a moment is not told of sets that were made later, and is of one that was under way", () => {
    const chosen = target({ day: "25" }, { day: "26", broken: "unreadable" }, { day: "27", broken: "unreadable" });
    expect(chosen({ at: Date.parse("2026-11-26T04:00:00Z") }).passedOver).toMatchObject([{ set: "set-26" }]);
  });

  test("says why it cannot restore the set that was named", () => {
    const chosen = target({ day: "26" }, { day: "27", broken: "lost a piece" });
    expect(() => chosen({ set: "set-27" })).toThrow(
      /no complete set set-27\. .*pieces are gone.* It has set-26 of h\./,
    );
    expect(chosen({ set: "set-26" }).passedOver).toEqual([]);
  });

  test("says why, when nothing can be restored", () => {
    expect(() => target({ day: "27", broken: "unreadable" })()).toThrow(
      /The set set-27 is unreadable: its manifest cannot be read: it is damaged\. Nothing in it is complete\./,
    );
  });

  test("does not take another platform's set because the own ones cannot be read", () => {
    const chosen = target({ day: "26", platform: "theirs" }, { day: "27", broken: "unreadable" });
    expect(() => chosen()).toThrow(expect.objectContaining({ code: "failed_precondition" }));
    expect(chosen({ set: "set-26" }).manifest.platform).toBe("theirs");
  });
});
