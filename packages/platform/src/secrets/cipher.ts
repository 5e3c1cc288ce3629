/** The cryptography of secrets, and nothing else: pure functions of a key. */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";

export const KEY_BYTES = 32;
/** What GCM is made for; random ones are safe for 2^32 encryptions under one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** 64 bits: nobody's values are equal by chance, and a line of a terminal stays readable. */
const DIGEST_LENGTH = 16;

/** A value that only the key opens, and only in its place. */
interface Sealed {
  /** The tag is at its end. */
  ciphertext: Uint8Array;
  nonce: Uint8Array;
}

/** Whose secret it is: part of what is authenticated, so that no row can be moved to another app or name. */
interface Place {
  app: string;
  name: string;
}

/** How many bytes the value has that is in there. */
export function sizeOf({ ciphertext }: Sealed): number {
  return ciphertext.length - TAG_BYTES;
}

/** Encrypts a value for its place, with AES-256-GCM. */
export function seal(key: Buffer, place: Place, value: string): Sealed {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(bytesOf(place));
  const ciphertext = Buffer.concat([cipher.update(value, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return { ciphertext, nonce };
}

/** The value. Throws when the key is another one, the place is another one, or a bit was changed. */
export function unseal(key: Buffer, place: Place, { ciphertext, nonce }: Sealed): string {
  const end = ciphertext.length - TAG_BYTES;
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(bytesOf(place))
    .setAuthTag(ciphertext.subarray(end));
  return Buffer.concat([decipher.update(ciphertext.subarray(0, end)), decipher.final()]).toString("utf8");
}

/**
 * What is shown of a value: 16 hex digits, equal for equal values wherever they are. It takes the key to make one,
 * so that who has only the database cannot find a weak value by trying.
 */
export function digestOf(key: Buffer, value: string): string {
  const own = Buffer.from(hkdfSync("sha256", key, "", "hibernaut secrets digest", KEY_BYTES));
  return createHmac("sha256", own).update(value).digest("hex").slice(0, DIGEST_LENGTH);
}

/** Neither an app's name nor a secret's has a zero byte. */
function bytesOf({ app, name }: Place): Buffer {
  return Buffer.from(`${app}\0${name}`);
}
