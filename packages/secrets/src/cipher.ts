/** The cryptography of secrets. Pure functions of a key. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { wiping } from "@hibernaut/lib/wipe";
import type { Sealed } from "./contract.ts";

/** Length of the key, for AES-256. */
export const KEY_BYTES = 32;
/** The length that GCM is designed for. Random nonces are safe for 2^32 encryptions with one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** 16 hex digits are 64 bits: enough that different values don't share a digest by chance, and short in a terminal. */
const DIGEST_LENGTH = 16;

/** App and name of a secret. They are authenticated with it, so that no row can be moved to another app or name. */
interface SecretId {
  app: string;
  name: string;
}

/** Returns the size of the decrypted value, in bytes. */
export function sizeOf({ ciphertext }: Sealed): number {
  return ciphertext.length - TAG_BYTES;
}

/** Encrypts the value of a secret with AES-256-GCM. */
export function seal(key: Buffer, id: SecretId, value: string): Sealed {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(bytesOf(id));
  const encrypted = wiping(Buffer.from(value), (plain) => cipher.update(plain));
  return { ciphertext: Buffer.concat([encrypted, cipher.final(), cipher.getAuthTag()]), nonce };
}

/** Decrypts a value. Throws when the key, the app or the name is a different one, or when a bit was changed. */
export function unseal(key: Buffer, id: SecretId, { ciphertext, nonce }: Sealed): string {
  const end = ciphertext.length - TAG_BYTES;
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(bytesOf(id))
    .setAuthTag(ciphertext.subarray(end));
  return wiping(decipher.update(ciphertext.subarray(0, end)), (plain) => {
    // GCM has given all bytes by now. This checks the tag.
    decipher.final();
    return plain.toString("utf8");
  });
}

/**
 * Returns the digest that is shown of a value: 16 hex digits, the same for equal values in all apps. Computing one takes
 * the key, so nobody who has only the database can guess a weak value by trying.
 */
export function digestOf(key: Buffer, value: string): string {
  const derived = new Uint8Array(hkdfSync("sha256", key, "", "hibernaut secrets digest", KEY_BYTES));
  const hmac = wiping(derived, (digestKey) => createHmac("sha256", digestKey));
  wiping(Buffer.from(value), (plain) => hmac.update(plain));
  return hmac.digest("hex").slice(0, DIGEST_LENGTH);
}

/** Unambiguous, because neither an app's name nor a secret's contains a zero byte. */
function bytesOf({ app, name }: SecretId): Buffer {
  return Buffer.from(`${app}\0${name}`);
}
