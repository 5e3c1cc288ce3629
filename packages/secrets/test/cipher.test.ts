import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { digestOf, KEY_BYTES, seal, sizeOf, unseal } from "../src/cipher.ts";

const key = randomBytes(KEY_BYTES);
const place = { app: "shop", name: "API_KEY" };

describe("a sealed value", () => {
  test.each(["", "s3cret", "zwei\nZeilen, ü, 🗝", "x".repeat(48 * 1024)])("decrypts to what was encrypted", (value) => {
    const sealed = seal(key, place, value);
    expect(unseal(key, place, sealed)).toBe(value);
    expect(sizeOf(sealed)).toBe(Buffer.byteLength(value));
  });

  test("differs every time and does not contain the value", () => {
    const [one, two] = [seal(key, place, "s3cret"), seal(key, place, "s3cret")];
    expect(Buffer.from(one.ciphertext).equals(two.ciphertext)).toBe(false);
    expect(Buffer.from(one.ciphertext).toString("latin1")).not.toContain("s3cret");
  });

  test("is refused when any of its bits was changed", () => {
    const sealed = seal(key, place, "s3cret");
    for (const part of ["ciphertext", "nonce"] as const) {
      for (let at = 0; at < sealed[part].length; at += 1) {
        const changed = Buffer.from(sealed[part]);
        changed[at] = (changed[at] ?? 0) ^ 1;
        expect(() => unseal(key, place, { ...sealed, [part]: changed }), `${part} ${at}`).toThrow();
      }
    }
    expect(() => unseal(key, place, { ...sealed, ciphertext: sealed.ciphertext.subarray(1) })).toThrow();
  });

  test("is refused with another key, and as a secret of another app or name", () => {
    const sealed = seal(key, place, "s3cret");
    expect(() => unseal(randomBytes(KEY_BYTES), place, sealed)).toThrow();
    expect(() => unseal(key, { ...place, app: "blog" }, sealed)).toThrow();
    expect(() => unseal(key, { ...place, name: "API_KEYS" }, sealed)).toThrow();
  });
});

test("equal values have equal digests under one key, and a digest is not a plain hash", () => {
  expect(digestOf(key, "a")).toMatch(/^[0-9a-f]{16}$/);
  expect(digestOf(key, "a")).toBe(digestOf(key, "a"));
  expect(digestOf(key, "a")).not.toBe(digestOf(key, "b"));
  expect(digestOf(key, "a")).not.toBe(digestOf(randomBytes(KEY_BYTES), "a"));
});
