/** Metadata of machines: it changes while they stay as they are. */
import { METADATA_KEY_PATTERN, MOST_METADATA_KEYS } from "@hibernaut/domain/metadata";
import { expect, test } from "vitest";
import { after, machine, PENDING } from "../../platform/test/helpers/decisions.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();
const change = (id: string, what: Record<string, string | null>) => shop.platform.metadata.change("shop", id, what);
const keys = (count: number, prefix = "k") =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, "v"]));

test("a change keeps version, snapshot and memory, and is told once", async () => {
  const id = await shop.sleeper({ metadata: { team: "a", role: "web" } });
  const { version, snapshot } = shop.record(id);
  expect(change(id, { role: null, "build/7": "x", none: null })).toEqual({ team: "a", "build/7": "x" });
  expect(shop.record(id)).toMatchObject({ version, snapshot, state: "suspended" });
  const told = () => shop.events(id, "metadata_changed").map(({ details }) => details);
  expect(told()).toEqual([{ keys: ["role", "build/7", "none"] }]);
  change(id, { team: "a" });
  expect(told()).toHaveLength(1);
  await shop.restart();
  expect(shop.platform.metadata.get("shop", id)).toEqual({ team: "a", "build/7": "x" });
  await shop.start(id);
  expect(shop.record(id).lastBoot).toMatchObject({ kind: "resume" });
  expect(change(id, { team: null, "build/7": null })).toEqual({});
  expect(shop.record(id).config).not.toHaveProperty("metadata");
});

test("an update that was asked for before does not undo it", () => {
  const config = { ...PENDING.config, metadata: { a: "2" } };
  const updating = machine("updating", { pending: { ...PENDING, config } });
  const { record } = after(updating, { type: "metadata", change: { b: "3" } });
  expect(record.config.metadata).toEqual({ b: "3" });
  expect(record.pending?.config.metadata).toEqual({ a: "2", b: "3" });
});

test("a machine of an earlier release may have too many keys, and loses them bit by bit", async () => {
  const id = await shop.create({ metadata: keys(MOST_METADATA_KEYS + 2) });
  expect(() => change(id, { one: "more" })).toThrow(/at most 64 keys.*would have 67/);
  change(id, { k0: "changed" });
  change(id, { k0: null });
  expect(Object.keys(change(id, { k1: null, k2: null, last: "fits" }))).toHaveLength(MOST_METADATA_KEYS);
  expect(() => change(id, { one: "more" })).toThrow();
});

test("keys are words that a path, a query and a document agree on", () => {
  const pattern = new RegExp(METADATA_KEY_PATTERN);
  for (const key of ["a", "hibernaut_process_group", "a.b/c:d", "__proto", "...", "constructor", "k".repeat(64)])
    expect(key, key).toMatch(pattern);
  for (const key of ["", " ", "a b", "ä", "__proto__", ".", "..", "a\n", "a\u0000", "k".repeat(65)])
    expect(key, JSON.stringify(key)).not.toMatch(pattern);
});
