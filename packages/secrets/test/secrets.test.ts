import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "@hibernaut/store";
import { openStore } from "@hibernaut/store/open";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { KEY_BYTES } from "../src/cipher.ts";
import type { Secrets } from "../src/contract.ts";
import { openSecrets } from "../src/open.ts";
import { MAX_SECRETS, MAX_VALUE_BYTES } from "../src/rules.ts";

let folder: string;
let keyFile: string;
let store: Store;
let secrets: Secrets;

beforeEach(async () => {
  folder = await tempFolder("secrets");
  keyFile = join(folder, "secrets.key");
  store = openStore(join(folder, "hibernaut.db"));
  onTestFinished(() => store.close());
  for (const name of ["shop", "blog"]) store.apps.insert({ name, createdAt: "2026-01-01T00:00:00.000Z" });
  secrets = openSecrets({ store: store.secrets, keyFile });
});

const invalid = expect.objectContaining({ code: "invalid_argument" });
const refused = (...words: string[]) =>
  expect.objectContaining({
    code: "failed_precondition",
    message: expect.stringMatching(new RegExp(`${words.join(".*")}.*Put the key back from a backup`)),
  });

describe("secrets", () => {
  test("become environment variables, and are listed without their values", () => {
    secrets.set("shop", { TOKEN: "s3cret", A: "s3cret", EMPTY: "" });
    secrets.set("blog", { TOKEN: "other" });
    expect(secrets.environment("shop")).toEqual({ TOKEN: "s3cret", A: "s3cret", EMPTY: "" });
    expect(secrets.environment("blog")).toEqual({ TOKEN: "other" });
    const [a, empty, token] = secrets.list("shop");
    expect([a?.name, empty?.name, token?.name]).toEqual(["A", "EMPTY", "TOKEN"]);
    expect(a?.digest).toBe(token?.digest);
    expect(a?.digest).not.toBe(empty?.digest);
    expect(JSON.stringify(secrets.list("shop"))).not.toContain("s3cret");
  });

  test("are not in any file on disk as plain text", () => {
    secrets.set("shop", { TOKEN: "s3cret-value" });
    for (const file of readdirSync(folder)) {
      expect(readFileSync(join(folder, file)).includes("s3cret-value"), file).toBe(false);
    }
  });

  test("that already have the value are not touched", () => {
    secrets.set("shop", { TOKEN: "a", OTHER: "b" });
    const before = store.secrets.list("shop");
    expect(secrets.changed("shop", { TOKEN: "a", OTHER: "c", NEW: "d" })).toEqual(["OTHER", "NEW"]);
    secrets.set("shop", { TOKEN: "a" });
    expect(store.secrets.list("shop")).toEqual(before);
  });

  test("have a version that changes with every change, and is the same for the same secrets", () => {
    expect(secrets.version("shop")).toBe("");
    secrets.set("shop", { TOKEN: "a" });
    const first = secrets.version("shop");
    secrets.set("shop", { TOKEN: "b" });
    expect(secrets.version("shop")).not.toBe(first);
    expect(secrets.unset("shop", "TOKEN")).toBe(true);
    expect(secrets.unset("shop", "TOKEN")).toBe(false);
    expect(secrets.version("shop")).toBe("");
  });

  test.each([
    [{}],
    [{ "": "x" }],
    [{ "1A": "x" }],
    [{ "A-B": "x" }],
    [{ "A=B": "x" }],
    [{ HIBERNAUT_REGION: "x" }],
    [{ FLY_REGION: "x" }],
    [{ ["A".repeat(257)]: "x" }],
    [{ OK: "fine", ZERO: "a\0b" }],
    [{ OK: "fine", BIG: "ü".repeat(MAX_VALUE_BYTES / 2 + 1) }],
  ] as Record<string, string>[][])("one invalid secret makes the whole request fail: %#", (values = {}) => {
    expect(() => secrets.set("shop", values)).toThrow(invalid);
    expect(secrets.list("shop")).toEqual([]);
    expect(existsSync(keyFile)).toBe(false);
  });

  test("are never repeated in an error", () => {
    const silent = expect.objectContaining({ message: expect.not.stringContaining("s3cret") });
    for (const value of ["s3cret\0", "s3cret".repeat(10_000)])
      expect(() => secrets.set("shop", { NAME: value })).toThrow(silent);
  });

  test("are limited in number and size, counting those that exist", () => {
    const many = (count: number, value: string, prefix = "S") =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, value]));
    secrets.set("shop", many(MAX_SECRETS, "x"));
    secrets.set("shop", many(MAX_SECRETS, "y"));
    expect(() => secrets.set("shop", { ONE_MORE: "x" })).toThrow(invalid);
    const large = "x".repeat(MAX_VALUE_BYTES);
    secrets.set("blog", many(20, large));
    secrets.set("blog", many(20, large));
    expect(() => secrets.set("blog", many(2, large, "T"))).toThrow(invalid);
  });
});

describe("the key", () => {
  test("is made with the first secret, readable by its owner alone, and kept", () => {
    secrets.list("shop");
    secrets.environment("shop");
    secrets.changed("shop", { TOKEN: "a" });
    expect(existsSync(keyFile)).toBe(false);
    secrets.set("shop", { TOKEN: "a" });
    const key = readFileSync(keyFile);
    expect(key).toHaveLength(KEY_BYTES);
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);
    secrets.set("blog", { TOKEN: "a" });
    expect(readFileSync(keyFile).equals(key)).toBe(true);
    expect(readdirSync(folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  test("is reported when missing; it is not made again, and lists and unsets work without it", () => {
    secrets.set("shop", { TOKEN: "a" });
    const key = readFileSync(keyFile);
    rmSync(keyFile);
    for (const attempt of [
      () => secrets.environment("shop"),
      () => secrets.set("shop", { TOKEN: "b" }),
      () => secrets.set("blog", { TOKEN: "b" }),
      () => secrets.changed("blog", { TOKEN: "b" }),
    ])
      expect(attempt).toThrow(refused("secrets.key, is missing"));
    expect(existsSync(keyFile)).toBe(false);
    expect(secrets.list("shop")).toHaveLength(1);
    writeFileSync(keyFile, key);
    expect(secrets.environment("shop")).toEqual({ TOKEN: "a" });
    rmSync(keyFile);
    expect(secrets.unset("shop", "TOKEN")).toBe(true);
    secrets.set("shop", { TOKEN: "new" });
    expect(secrets.environment("shop")).toEqual({ TOKEN: "new" });
  });

  test("is reported when it is the wrong one, and encrypts nothing", () => {
    secrets.set("shop", { TOKEN: "a" });
    const right = readFileSync(keyFile);
    const before = store.secrets.list("shop");
    chmodSync(keyFile, 0o600);
    writeFileSync(keyFile, Buffer.alloc(KEY_BYTES, 7));
    expect(() => secrets.environment("shop")).toThrow(refused("Secret TOKEN of app shop cannot be decrypted"));
    expect(() => secrets.set("blog", { TOKEN: "b" })).toThrow(refused("Secret TOKEN of app shop"));
    expect(store.secrets.list("shop")).toEqual(before);
    expect(store.secrets.list("blog")).toEqual([]);
    writeFileSync(keyFile, right);
    expect(secrets.environment("shop")).toEqual({ TOKEN: "a" });
  });

  test("is reported when it is not valid", () => {
    writeFileSync(keyFile, "short");
    expect(() => secrets.set("shop", { TOKEN: "a" })).toThrow(refused("has 5 bytes instead of 32"));
    expect(readFileSync(keyFile, "utf8")).toBe("short");
  });
});

test("a row that was moved to another app is refused", () => {
  secrets.set("shop", { TOKEN: "a" });
  store.secrets.set(store.secrets.list("shop").map((record) => ({ ...record, app: "blog" })));
  expect(() => secrets.environment("blog")).toThrow(refused("Secret TOKEN of app blog cannot be decrypted"));
  expect(secrets.environment("shop")).toEqual({ TOKEN: "a" });
});
