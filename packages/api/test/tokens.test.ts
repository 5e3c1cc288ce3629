import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "@hibernaut/store";
import { openStore } from "@hibernaut/store/open";
import Database from "better-sqlite3";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../../store/test/helpers.ts";
import { type AdminToken, ensureAdminToken } from "../src/admin-token.ts";
import { TokenUse } from "../src/token-use.ts";
import { createToken, revokeToken, rotateToken, verifyToken } from "../src/tokens.ts";

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

  test("with an expiry is valid until then", () => {
    const { token, record } = createToken(store.tokens, "ci", { lifeMs: 60_000 });
    const end = Date.parse(record.expiresAt ?? "");
    expect(verifyToken(store.tokens, token, end - 1)?.id).toBe(record.id);
    expect(verifyToken(store.tokens, token, end)).toBeUndefined();
  });

  test("is rotated without a gap: both are valid for a while, and the new one has the same rights and life", () => {
    store.apps.insert({ name: "shop", createdAt: new Date().toISOString() });
    const rights = { scopes: ["deploy"] as const, apps: ["shop"], lifeMs: 1_000_000 };
    const { token, record } = createToken(store.tokens, "ci", rights);
    const rotated = rotateToken(store.tokens, record.id, { overlapMs: 60_000 });
    expect(rotated.record).toMatchObject({ name: "ci", scopes: ["deploy"], apps: ["shop"] });
    expect(Date.parse(rotated.record.expiresAt ?? "") - Date.parse(rotated.record.createdAt)).toBe(1_000_000);
    const end = Date.parse(rotated.old.validUntil);
    expect(verifyToken(store.tokens, token, end - 1)?.replacedBy).toBe(rotated.record.id);
    expect(verifyToken(store.tokens, rotated.token)?.id).toBe(rotated.record.id);
    expect(verifyToken(store.tokens, token, end)).toBeUndefined();
    expect(() => rotateToken(store.tokens, record.id, { overlapMs: 0 })).toThrow(rotated.record.id);
  });

  test("for E2B's clients is followed by another that they accept", () => {
    store.apps.insert({ name: "shop", createdAt: "" });
    const { record } = createToken(store.tokens, "agents", { apps: ["shop"], e2b: true });
    const rotated = rotateToken(store.tokens, record.id, { overlapMs: 60_000 });
    expect(rotated.token).toMatch(/^e2b_[0-9a-f]{64}$/);
    expect(rotateToken(store.tokens, rotated.record.id, { overlapMs: 0 }).token).toMatch(/^e2b_/);
  });

  test("that expires soon does not live longer because it is rotated", () => {
    const { record } = createToken(store.tokens, "ci", { lifeMs: 60_000 });
    const { old } = rotateToken(store.tokens, record.id, { overlapMs: 3_600_000 });
    expect(old.validUntil).toBe(record.expiresAt);
  });

  test("for an app that does not exist cannot be made, and leaves nothing behind", () => {
    expect(() => createToken(store.tokens, "ci", { apps: ["none"] })).toThrow("does not exist");
    expect(store.tokens.list()).toEqual([]);
  });

  test("notes its use in memory, and writes it once for any number of uses", () => {
    const { record } = createToken(store.tokens, "ci");
    const writes: number[] = [];
    const tokens = {
      used: (times: ReadonlyMap<string, string>) => (writes.push(times.size), store.tokens.used(times)),
    };
    const use = new TokenUse({ tokens, onFault: (error) => expect.fail(String(error)) });
    for (let count = 0; count < 1000; count += 1) use.note(record.id);
    expect(writes).toEqual([]);
    const at = use.of(record.id);
    use.write();
    use.write();
    expect(writes).toEqual([1]);
    expect(store.tokens.list()[0]?.lastUsedAt).toBe(at);
  });

  test("of an earlier release may do everything", () => {
    const old = openStore(join(folder, "old.db"));
    onTestFinished(() => old.close());
    const db = new Database(join(folder, "old.db"));
    db.prepare(
      "INSERT INTO tokens (id, name, hash, created_at) VALUES ('t', 'old', 'h', '2026-01-01T00:00:00Z')",
    ).run();
    db.close();
    expect(old.tokens.list()).toMatchObject([{ scopes: ["admin"], apps: null, expiresAt: null, lastUsedAt: null }]);
  });

  test("that is the last one that may do everything, or does not exist, cannot be revoked", () => {
    createToken(store.tokens, "ci", { scopes: ["admin"], lifeMs: 0 });
    createToken(store.tokens, "reader", { scopes: ["read"] });
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

  test("updates the address that an earlier start wrote, and keeps what else the files have", () => {
    const { token } = ensure();
    const more = { api_client_cert: "ann.crt", api_client_key: "ann.key" };
    for (const file of [configFile(), join(folder, "one/config.json")])
      writeFileSync(file, JSON.stringify({ ...config(file), ...more }));
    ensure({ apiUrl: "https://127.0.0.1:2" });
    for (const file of [configFile(), join(folder, "one/config.json")])
      expect(config(file)).toEqual({ api_url: "https://127.0.0.1:2", api_token: token, ...more });
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

  test("that was rotated is renewed where it was written", () => {
    const { token } = ensure();
    rotateToken(store.tokens, verifyToken(store.tokens, token)?.id ?? "", { overlapMs: 60_000 });
    const next = ensure();
    expect(next.token).not.toBe(token);
    for (const file of [configFile(), join(folder, "one/config.json")]) expect(config(file).api_token).toBe(next.token);
    expect(verifyToken(store.tokens, next.token)).toMatchObject({ scopes: ["admin"], expiresAt: null });
  });

  test("is not one that may do less, although the user's file has it", () => {
    const { token } = createToken(store.tokens, "reader", { scopes: ["read"] });
    ensure({ data: "elsewhere" });
    writeFileSync(configFile(), JSON.stringify({ api_url: "http://127.0.0.1:1", api_token: token }));
    const admin = ensure();
    expect(admin.token).not.toBe(token);
    expect(config(configFile()).api_token).toBe(token);
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
