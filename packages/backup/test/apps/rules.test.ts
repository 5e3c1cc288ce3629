/** What restored apps may do, which set they come from, and whether a drill passed: the rules. */
import { describe, expect, test } from "vitest";
import { chooseForApp, nextToDrill } from "../../src/apps/choose.ts";
import { configFor, useOf } from "../../src/apps/rules.ts";
import { countOf, drillCount, drillFailure } from "../../src/apps/verdict.ts";
import type { Manifest } from "../../src/targets/manifest.ts";

const exists = (app: string) => app === "shop";

describe("what an app is restored for", () => {
  test.each([
    [{ app: "shop", as: "old" }, "copy"],
    [{ app: "gone" }, "again"],
    [{ app: "gone", as: "gone" }, "again"],
    [{ app: "shop", inPlace: true }, "in_place"],
  ])("%o is %s", (wanted, use) => {
    expect(useOf(wanted, exists)).toBe(use);
  });

  test.each([
    [{ app: "shop" }, "already_exists"],
    [{ app: "gone", as: "shop" }, "already_exists"],
    [{ app: "gone", inPlace: true }, "not_found"],
    [{ app: "shop", as: "old", inPlace: true }, "invalid_argument"],
    [{ app: "shop", as: "../shop" }, "invalid_argument"],
  ])("%o is refused with %s", (wanted, code) => {
    expect(() => useOf(wanted, exists)).toThrow(expect.objectContaining({ code }));
  });

  test("a copy gets no public port and no schedule, and one for a drill reaches nobody", () => {
    const config = {
      image: "app:1",
      schedule: "daily",
      services: [{ protocol: "tcp" as const, internal_port: 5432, ports: [{ port: 5432 }] }, { internal_port: 80 }],
      network: { egress: { allow: ["192.0.2.1"] } },
    };
    expect(configFor("in_place", config)).toBe(config);
    const copy = {
      image: "app:1",
      services: [{ protocol: "tcp", internal_port: 5432, ports: [] }, { internal_port: 80 }],
    };
    expect(configFor("copy", config)).toEqual({ ...copy, network: config.network });
    expect(configFor("drill", config)).toEqual({ ...copy, network: { egress: { default: "deny" } } });
  });
});

const manifest = (set: string, { platform = "p", app = "shop" } = {}): Manifest => ({
  ...{ format: 1, set, platform, version: "0.1.0", host: "h", at: `2026-11-0${set}T00:00:00Z` },
  ...{ endedAt: `2026-11-0${set}T00:01:00Z`, withoutMemory: [], added: 0 },
  pieces: [{ kind: "machine", name: "machine-1", snapshot: `piece-${set}`, bytes: 1, sha256: "", app, volumes: [] }],
  verified: { at: "2026-11-01T00:00:00Z", read: "sample" },
});

describe("the set that an app comes from", () => {
  const of = (...all: [Manifest | string, string, string?][]) => ({
    platform: "p",
    snapshots: all.flatMap(([one, set, platform = "p"]) => [
      { id: `m-${set}`, set, platform, time: `2026-11-0${set}T00:02:00Z`, file: "manifest.json", isManifest: true },
      ...(typeof one === "object"
        ? [{ id: `piece-${set}`, set, platform, time: one.at, file: "machine-1.tar", isManifest: false }]
        : []),
    ]),
    manifests: all.map(([one, set]) => ({ snapshot: `m-${set}`, manifest: one })),
  });
  const three = of([manifest("1"), "1"], [manifest("2"), "2"], [manifest("3", { platform: "q" }), "3", "q"]);

  test("is the newest of this platform, unless a time or a name says otherwise", () => {
    expect(chooseForApp(three, {}).set).toBe("2");
    expect(chooseForApp(three, { at: Date.parse("2026-11-01T12:00:00Z") }).set).toBe("1");
    expect(chooseForApp(three, { set: "3" }).set).toBe("3");
    expect(() => chooseForApp(three, { at: 0 })).toThrow(/no set that is complete and old enough/);
    expect(() => chooseForApp(three, { set: "9" })).toThrow(/no complete set 9/);
  });

  test("is never silently an older one than it seems", () => {
    const broken = of([manifest("1"), "1"], ["is not JSON", "2"]);
    expect(() => chooseForApp(broken, {})).toThrow(/The newest set, 2, cannot be read; the one before is 1/);
    expect(chooseForApp(broken, { set: "1" }).set).toBe("1");
    expect(() => chooseForApp(broken, { at: Date.parse("2026-11-03T00:00:00Z") })).toThrow(/The newest set, 2/);
    expect(chooseForApp(broken, { at: Date.parse("2026-11-01T12:00:00Z") }).set).toBe("1");
    const older = of(["is not JSON", "1"], [manifest("2"), "2"]);
    expect(chooseForApp(older, {}).set).toBe("2");
  });

  test("is tried app by app, the one that waits longest first", () => {
    const one = { ...manifest("1"), pieces: ["a", "b"].flatMap((app) => manifest("1", { app }).pieces) };
    expect(nextToDrill(one, new Map())).toBe("a");
    expect(nextToDrill(one, new Map([["a", "2026-11-01T00:00:00Z"]]))).toBe("b");
    const both = new Map([
      ["a", "2026-11-02T00:00:00Z"],
      ["b", "2026-11-01T00:00:00Z"],
    ]);
    expect(nextToDrill(one, both)).toBe("b");
  });
});

test("a count is one number, and a drill passes with enough of everything", () => {
  expect([countOf(" 12\n"), countOf("0")]).toEqual([12, 0]);
  for (const text of ["", "1 2", "-1", "1.5", "1e3", "9".repeat(16)]) expect(countOf(text)).toMatch(/is not a number/);
  const count = { name: "orders", command: ["count"] };
  const healthy = { from: "1", name: "web", start: "resume", health: "healthy", tookMs: 1, note: null } as const;
  expect(drillFailure([healthy], [drillCount("web", count, 1, [])])).toBeUndefined();
  expect(drillFailure([healthy], [drillCount("web", count, 0, [])]), "an empty table is not worth a backup").toMatch(
    /0 is less than 1/,
  );
  expect(drillFailure([healthy], [drillCount("web", count, "it failed", [])])).toMatch(/it failed/);
  expect(drillFailure([{ ...healthy, health: "failed", note: "no" }], [])).toMatch(/web did not get healthy: no/);
  expect(drillFailure([{ ...healthy, health: "stopped" }], [])).toBeUndefined();
});
