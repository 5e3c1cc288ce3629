import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { SecretRecord, Store } from "../src/contract.ts";
import { openStore } from "../src/open.ts";
import { temporaryFolder } from "./helpers.ts";

let store: Store;

beforeEach(() => {
  store = openStore(join(temporaryFolder(), "hibernaut.db"));
  onTestFinished(() => store.close());
  for (const name of ["shop", "blog"]) store.apps.insert({ name, createdAt: "2026-01-01T00:00:00.000Z" });
});

const secret = (changes: Partial<SecretRecord> = {}): SecretRecord => ({
  app: "shop",
  name: "TOKEN",
  ciphertext: Buffer.from([0, 1, 255]),
  nonce: Buffer.alloc(12, 9),
  digest: "0123456789abcdef",
  updatedAt: "2026-01-01T00:00:00.000Z",
  ...changes,
});

test("are returned as they were stored, by name, for their app only", () => {
  expect(store.secrets.any()).toBeUndefined();
  store.secrets.set([secret(), secret({ name: "A" }), secret({ app: "blog" })]);
  expect(store.secrets.list("shop")).toEqual([secret({ name: "A" }), secret()]);
  expect(store.secrets.list("blog")).toEqual([secret({ app: "blog" })]);
  expect(store.secrets.any()).toBeDefined();
});

test("are replaced and removed by app and name", () => {
  store.secrets.set([secret(), secret({ app: "blog" })]);
  store.secrets.set([secret({ digest: "f".repeat(16) })]);
  expect(store.secrets.list("shop")).toEqual([secret({ digest: "f".repeat(16) })]);
  expect(store.secrets.remove("shop", "OTHER")).toBe(false);
  expect(store.secrets.remove("shop", "TOKEN")).toBe(true);
  expect(store.secrets.list("shop")).toEqual([]);
  expect(store.secrets.list("blog")).toHaveLength(1);
});

test("are stored all together or not at all", () => {
  expect(() => store.secrets.set([secret(), secret({ app: "gone" })])).toThrow("FOREIGN KEY");
  expect(store.secrets.list("shop")).toEqual([]);
});

test("are deleted with their app", () => {
  store.secrets.set([secret()]);
  expect(store.apps.delete("shop")).toBe(true);
  expect(store.secrets.any()).toBeUndefined();
});
