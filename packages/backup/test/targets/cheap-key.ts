/**
 * Makes repositories of tests quick to open. restic derives the key of a repository from its password in a third of a second of
 * CPU, at each call, because people choose weak ones; a test calls it forty times. Its own file format says how much work that is, so
 * the key is stored once more, with next to none. The repository stays restic's in all else.
 *
 * Format: https://restic.readthedocs.io/en/stable/100_references.html (keys, encryption and MAC).
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes, scryptSync } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const IV_BYTES = 16;
const MAC_BYTES = 16;
/** The least that scrypt takes. */
const LEAST = { N: 2, r: 1, p: 1 };
const MAX_MEMORY = 256 * 1024 * 1024;

interface KeyFile {
  N: number;
  r: number;
  p: number;
  salt: string;
  data: string;
}

/** Replaces the one key of a repository in a directory. Throws when the password is not its. */
export async function cheapen(repository: string, password: string): Promise<void> {
  const folder = join(repository, "keys");
  const [name = ""] = await readdir(folder);
  const stored = JSON.parse(await readFile(join(folder, name), "utf8")) as KeyFile;
  const master = open(Buffer.from(stored.data, "base64"), derive(password, stored));
  const salt = randomBytes(64).toString("base64");
  const data = seal(master, derive(password, { ...LEAST, salt })).toString("base64");
  const text = JSON.stringify({ ...stored, ...LEAST, salt, data });
  await writeFile(join(folder, createHash("sha256").update(text).digest("hex")), text, { mode: 0o600 });
  await rm(join(folder, name));
}

interface Keys {
  encrypt: Buffer;
  /** Key of Poly1305-AES: `k` encrypts the nonce, `r` is the multiplier. */
  k: Buffer;
  r: Buffer;
}

function derive(password: string, { N, r, p, salt }: Omit<KeyFile, "data">): Keys {
  const bytes = scryptSync(password, Buffer.from(salt, "base64"), 64, { N, r, p, maxmem: MAX_MEMORY });
  return { encrypt: bytes.subarray(0, 32), k: bytes.subarray(32, 48), r: bytes.subarray(48, 64) };
}

function seal(plain: Buffer, keys: Keys): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-ctr", keys.encrypt, iv);
  const text = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([iv, text, macOf(text, iv, keys)]);
}

function open(sealed: Buffer, keys: Keys): Buffer {
  const [iv, text] = [sealed.subarray(0, IV_BYTES), sealed.subarray(IV_BYTES, -MAC_BYTES)];
  if (!macOf(text, iv, keys).equals(sealed.subarray(-MAC_BYTES)))
    throw new Error("the password is not that of the key");
  const decipher = createDecipheriv("aes-256-ctr", keys.encrypt, iv);
  return Buffer.concat([decipher.update(text), decipher.final()]);
}

const number = (bytes: Buffer) => BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`);

/** Poly1305 with a nonce that AES encrypts, as its author has it. */
function macOf(text: Buffer, nonce: Buffer, { k, r }: Keys): Buffer {
  const prime = 2n ** 130n - 5n;
  const factor = number(r) & 0x0ffffffc0ffffffc0ffffffc0fffffffn;
  let sum = 0n;
  for (let at = 0; at < text.length; at += 16)
    sum = ((sum + number(Buffer.concat([text.subarray(at, at + 16), Buffer.of(1)]))) * factor) % prime;
  const aes = createCipheriv("aes-128-ecb", k, null).setAutoPadding(false);
  const mac = (sum + number(aes.update(nonce))) % 2n ** 128n;
  return Buffer.from(mac.toString(16).padStart(32, "0"), "hex").reverse();
}
