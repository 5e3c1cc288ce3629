/** The tokens that open one sandbox each. They are derived, so nothing has to be stored, and a fork has its own. */
import { createHash, createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

/** What a token is for: the files and processes of a sandbox, its ports, or the files of a volume. */
export type TokenUse = "inside" | "traffic" | "volume";

/** What a signed URL may do. */
type FileOperation = "read" | "write";

export class SandboxTokens {
  readonly #key: Buffer;

  constructor(secret: Buffer) {
    this.#key = Buffer.from(hkdfSync("sha256", secret, "", "hibernaut sandbox tokens", 32));
  }

  /** The token of a sandbox or a volume, 64 hex digits. */
  of(id: string, use: TokenUse): string {
    return createHmac("sha256", this.#key).update(`${use}:${id}`).digest("hex");
  }

  /** Whether `token` opens it. */
  opens(id: string, use: TokenUse, token: string | undefined): boolean {
    return token !== undefined && same(token, this.of(id, use));
  }

  /**
   * Whether the signature of a URL is right, and still holds. `expiration` is in seconds since 1970; `user` is empty if the
   * URL names none.
   */
  signed(
    id: string,
    operation: FileOperation,
    { path, user, signature, expiration }: { path: string; user: string; signature: string; expiration?: number },
    now = Date.now(),
  ): boolean {
    if (expiration !== undefined && !(expiration * 1000 > now)) return false;
    const end = expiration === undefined ? "" : `:${expiration}`;
    const signed = `${path}:${operation}:${user}:${this.of(id, "inside")}${end}`;
    return same(signature, `v1_${createHash("sha256").update(signed).digest("base64").replace(/=+$/, "")}`);
  }
}

/** The hashes have one length, whatever the strings have. */
function same(one: string, other: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(one), hash(other));
}
