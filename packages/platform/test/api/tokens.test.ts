import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type AdminToken, ensureAdminToken } from "../../src/api/admin-token.ts";
import { createToken, revokeToken, verifyToken } from "../../src/api/tokens.ts";
import type { Store } from "../../src/store/contract.ts";
import { openStore } from "../../src/store/store.ts";
import { temporaryFolder } from "../store/helpers.ts";

let folder: string;
let store: Store;

beforeEach(() => {
  folder = temporaryFolder();
  store = newStore("one");
});

function newStore(name: string): Store {
  const opened = openStore(join(folder, name, "hibernaut.db"));
  onTestFinished(() => opened.close());
  return opened;
}

describe("a token", () => {
  test("is 256 random bits with a prefix, of which only a hash is stored", () => {
    const { token, record } = createToken(store.tokens, "ci");
    expect(token).toMatch(/^hib_[\w-]{43}$/);
    expect(JSON.stringify(store.tokens.list())).not.toContain(token.slice(4));
    expect(record.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(createToken(store.tokens, "ci").token).not.toBe(token);
  });

  test("is valid until it is revoked", () => {
    const { token, record } = createToken(store.tokens, "ci");
    createToken(store.tokens, "other");
    expect(verifyToken(store.tokens, token)?.id).toBe(record.id);
    for (const wrong of ["", "hib_", `${token}x`, token.slice(0, -1)])
      expect(verifyToken(store.tokens, wrong)).toBeUndefined();
    revokeToken(store.tokens, record.id);
    expect(verifyToken(store.tokens, token)).toBeUndefined();
  });

  test("that is the last one, or does not exist, cannot be revoked", () => {
    const { record } = createToken(store.tokens, "ci");
    expect(() => revokeToken(store.tokens, "nope")).toThrow(expect.objectContaining({ code: "not_found" }));
    expect(() => revokeToken(store.tokens, record.id)).toThrow(
      expect.objectContaining({ code: "failed_precondition" }),
    );
  });
});

describe("the admin token", () => {
  const configFile = () => join(folder, "xdg/hibernaut/config.json");
  const config = (file: string) => JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;

  function ensure(options: { store?: Store; data?: string; apiUrl?: string } = {}): AdminToken {
    const { data = "one", apiUrl = "http://127.0.0.1:1" } = options;
    const tokens = (options.store ?? store).tokens;
    return ensureAdminToken({ tokens, dataDir: join(folder, data), configFile: configFile(), apiUrl });
  }

  test("is created at the first start and written to both files, readable by the owner only", () => {
    const { token, written } = ensure();
    const ownFile = join(folder, "one/config.json");
    expect(written).toEqual([configFile(), ownFile]);
    for (const file of written) {
      expect(config(file)).toEqual({ api_url: "http://127.0.0.1:1", api_token: token });
      expect(statSync(file).mode & 0o777).toBe(0o600);
    }
    expect(statSync(join(folder, "xdg/hibernaut")).mode & 0o777).toBe(0o700);
    expect(verifyToken(store.tokens, token)).toBeDefined();
  });

  test("stays the same at the second start, and nothing is written", () => {
    const { token } = ensure();
    expect(ensure()).toEqual({ token, written: [] });
    expect(store.tokens.list()).toHaveLength(1);
  });

  test("updates the address where an earlier start wrote the old one", () => {
    const { token } = ensure();
    ensure({ apiUrl: "http://127.0.0.1:2" });
    for (const file of [configFile(), join(folder, "one/config.json")]) {
      expect(config(file)).toEqual({ api_url: "http://127.0.0.1:2", api_token: token });
    }
  });

  test("keeps an address that the user chose", () => {
    const { token } = ensure();
    writeFileSync(configFile(), JSON.stringify({ api_url: "https://example.org", api_token: token, extra: 1 }));
    ensure({ apiUrl: "http://127.0.0.1:2" });
    expect(config(configFile())).toEqual({ api_url: "https://example.org", api_token: token, extra: 1 });
  });

  test("of a second platform does not overwrite the first one's file, and its location is reported", () => {
    const first = ensure();
    const second = ensure({ store: newStore("two"), data: "two", apiUrl: "http://127.0.0.1:2" });
    expect(config(configFile()).api_token).toBe(first.token);
    expect(config(join(folder, "two/config.json"))).toEqual({ api_url: "http://127.0.0.1:2", api_token: second.token });
    expect(readFileSync(join(folder, "two/admin-token"), "utf8")).toBe(`${second.token}\n`);
    expect(statSync(join(folder, "two/admin-token")).mode & 0o777).toBe(0o600);
    expect(second.note).toContain("two/admin-token");
  });

  test("is created again after it was revoked; a broken file is left alone", () => {
    const { token } = ensure();
    createToken(store.tokens, "other");
    revokeToken(store.tokens, verifyToken(store.tokens, token)?.id ?? "");
    writeFileSync(configFile(), "{ broken");
    const next = ensure();
    expect(next.token).not.toBe(token);
    expect(readFileSync(configFile(), "utf8")).toBe("{ broken");
    expect(next.note).toBeDefined();
  });
});
