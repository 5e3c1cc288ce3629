import { join } from "node:path";
import Database from "better-sqlite3";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Store, TokenRecord } from "../src/contract.ts";
import { withoutSync } from "../src/database.ts";
import { KEPT_EVENTS } from "../src/machines.ts";
import { openStore } from "../src/open.ts";
import { machineEvent, machineRecord, temporaryFolder } from "./helpers.ts";

/** What SQLite calls it. */
const FULL = 2;

let file: string;
let store: Store;

function open(): Store {
  const opened = openStore(file);
  onTestFinished(() => opened.close());
  return opened;
}

beforeEach(() => {
  file = join(temporaryFolder(), "data/hibernaut.db");
  store = open();
});

const app = { name: "shop", createdAt: "2026-01-01T00:00:00.000Z" };

describe("apps", () => {
  test("a name is taken once", () => {
    expect(store.apps.insert(app)).toBe(true);
    expect(store.apps.insert({ ...app, createdAt: "later" })).toBe(false);
    expect(store.apps.get("shop")).toEqual(app);
    expect(store.apps.get("other")).toBeUndefined();
  });

  test("are listed by name", () => {
    store.apps.insert(app);
    store.apps.insert({ ...app, name: "blog" });
    expect(store.apps.list().map(({ name }) => name)).toEqual(["blog", "shop"]);
  });

  test("an app with a live machine is not deleted, and one with destroyed machines is deleted with them", () => {
    store.apps.insert(app);
    store.machines.insert(machineRecord(), machineEvent());
    expect(store.apps.delete("shop")).toBe(false);
    store.machines.update(machineRecord({ state: "destroyed" }));
    expect(store.apps.delete("shop")).toBe(true);
    expect(store.apps.delete("shop")).toBe(false);
    expect(store.machines.get("0123456789abcd")).toBeUndefined();
    expect(store.machines.events("0123456789abcd", 10)).toEqual([]);
  });
});

describe("machines", () => {
  beforeEach(() => void store.apps.insert(app));

  test("are complete after a restart", () => {
    const machine = machineRecord({
      snapshot: { generation: "g1", created_at: app.createdAt, size_bytes: 7 },
      lastBoot: { kind: "resume", reason: "request", at: app.createdAt, duration_ms: 182 },
      pending: {
        config: { image: "other" },
        version: "v2",
        imageDigest: "d",
        bundleVersion: "2",
        from: "suspended",
      },
    });
    store.machines.insert(machine, machineEvent());
    store.close();
    expect(open().machines.get(machine.id)).toEqual(machine);
  });

  test("an id and a live name are taken once, and a destroyed machine frees its name", () => {
    const { insert, update } = store.machines;
    expect(insert(machineRecord(), machineEvent())).toBe(true);
    expect(insert(machineRecord({ name: "web-2" }), machineEvent())).toBe(false);
    expect(insert(machineRecord({ id: "00000000000002" }), machineEvent())).toBe(false);
    update(machineRecord({ state: "destroyed" }));
    expect(insert(machineRecord({ id: "00000000000002" }), machineEvent())).toBe(true);
    expect(store.machines.events("0123456789abcd", 10)).toHaveLength(1);
  });

  test("two apps can have machines of the same name", () => {
    store.apps.insert({ ...app, name: "blog" });
    store.machines.insert(machineRecord(), machineEvent());
    expect(store.machines.insert(machineRecord({ id: "00000000000002", app: "blog" }), machineEvent())).toBe(true);
  });

  test("of a deleted app are refused with a sentence", () => {
    expect(() => store.machines.insert(machineRecord({ app: "gone" }), machineEvent())).toThrow(
      expect.objectContaining({ code: "not_found" }),
    );
  });

  test("live ones are listed oldest first", () => {
    store.apps.insert({ ...app, name: "blog" });
    store.machines.insert(machineRecord({ id: "ffffffffffffff", name: "a" }), machineEvent());
    store.machines.insert(machineRecord({ id: "00000000000001", name: "b" }), machineEvent());
    store.machines.insert(machineRecord({ id: "00000000000002", app: "blog" }), machineEvent());
    store.machines.insert(machineRecord({ id: "00000000000003", name: "c", state: "destroyed" }), machineEvent());
    const ids = (name?: string) => store.machines.list(name).map(({ id }) => id);
    expect(ids()).toEqual(["ffffffffffffff", "00000000000001", "00000000000002"]);
    expect(ids("shop")).toEqual(["ffffffffffffff", "00000000000001"]);
    expect(ids("nothing")).toEqual([]);
  });

  test("an update replaces the record and adds its event, both or neither", () => {
    store.machines.insert(machineRecord(), machineEvent());
    store.machines.update(
      machineRecord({ state: "starting", goal: "running" }),
      machineEvent({ type: "start", from: "created", to: "starting", details: { by: "api" } }),
    );
    expect(store.machines.get("0123456789abcd")).toMatchObject({ state: "starting", goal: "running" });
    expect(store.machines.events("0123456789abcd", 1)).toEqual([
      { at: app.createdAt, type: "start", from: "created", to: "starting", details: { by: "api" } },
    ]);
    const broken = machineEvent({ at: null as unknown as string });
    expect(() => store.machines.update(machineRecord({ state: "failed" }), broken)).toThrow("NOT NULL");
    expect(store.machines.get("0123456789abcd")).toMatchObject({ state: "starting" });
  });

  test("an update that does not wait for the disk is complete, and the next one waits again", () => {
    store.apps.insert(app);
    store.machines.insert(machineRecord(), machineEvent());
    const next = machineRecord({ state: "running" });
    store.machines.update(next, machineEvent({ type: "started" }), { unsynced: true });
    expect(open().machines.get(next.id)).toEqual(next);
    expect(store.machines.events(next.id, 1)).toMatchObject([{ type: "started" }]);
    const db = new Database(file);
    onTestFinished(() => void db.close());
    for (const fails of [false, true]) {
      const work = () => {
        if (fails) throw new Error("no");
      };
      const act = () => withoutSync(db, work);
      if (fails) expect(act).toThrow("no");
      else act();
      expect(db.pragma("synchronous", { simple: true })).toBe(FULL);
    }
  });

  test("an update of a machine that does not exist throws", () => {
    expect(() => store.machines.update(machineRecord())).toThrow("is not in the database");
  });

  test("the newest events come first and old ones are dropped", () => {
    store.machines.insert(machineRecord(), machineEvent());
    for (let count = 0; count < KEPT_EVENTS + 250; count++) {
      store.machines.update(machineRecord(), machineEvent({ details: { count } }));
    }
    const kept = store.machines.events("0123456789abcd", 10_000);
    expect(kept[0]?.details).toEqual({ count: KEPT_EVENTS + 249 });
    expect(kept.length).toBeGreaterThanOrEqual(KEPT_EVENTS);
    expect(kept.length).toBeLessThan(KEPT_EVENTS + 100);
  });
});

describe("tokens", () => {
  const token: TokenRecord = {
    id: "t1",
    name: "ci",
    hash: "ab".repeat(32),
    scopes: ["deploy"],
    apps: null,
    createdAt: app.createdAt,
    revokedAt: null,
    expiresAt: null,
    lastUsedAt: null,
    replacedBy: null,
  };

  test("are found by their hash", () => {
    store.tokens.insert(token);
    expect(store.tokens.findByHash(token.hash)).toEqual(token);
    expect(store.tokens.findByHash("cd".repeat(32))).toBeUndefined();
    expect(store.tokens.list()).toEqual([token]);
  });

  test("are revoked once", () => {
    store.tokens.insert(token);
    expect(store.tokens.revoke("t1", "2026-02-01T00:00:00.000Z")).toBe(true);
    expect(store.tokens.revoke("t1", "2026-03-01T00:00:00.000Z")).toBe(false);
    expect(store.tokens.revoke("t2", "2026-03-01T00:00:00.000Z")).toBe(false);
    expect(store.tokens.findByHash(token.hash)?.revokedAt).toBe("2026-02-01T00:00:00.000Z");
  });
});
