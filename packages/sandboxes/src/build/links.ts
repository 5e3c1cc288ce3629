/** Links for uploads: with one, these files of this app are uploaded, for a while, and nothing else is done. */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { LINK_MS } from "./limits.ts";
import { HASH } from "./steps.ts";
import type { Uploader } from "./uploads.ts";

/** What a link is for. */
interface LinkedUpload {
  app: Uploader;
  hash: string;
}

const SIGNATURE_BYTES = 32;

export class UploadLinks {
  readonly #key: Buffer;

  /** `secret` is that of the platform. */
  constructor(secret: Buffer) {
    this.#key = Buffer.from(hkdfSync("sha256", secret, "", "hibernaut sandbox uploads", 32));
  }

  /** Returns what makes a URL such a link: letters, digits, `-`, `_` and `.`. */
  make({ app, hash }: LinkedUpload, now = Date.now()): string {
    const said = Buffer.from(JSON.stringify([app.name, app.createdAt, hash, now + LINK_MS]));
    return `${said.toString("base64url")}.${this.#sign(said).toString("base64url")}`;
  }

  /** What the link is for. Undefined unless it is one of this platform's, and still holds. */
  read(text: string, now = Date.now()): LinkedUpload | undefined {
    const [said = "", signature = ""] = text.split(".");
    const bytes = Buffer.from(said, "base64url");
    const signed = Buffer.from(signature, "base64url");
    if (signed.length !== SIGNATURE_BYTES || !timingSafeEqual(signed, this.#sign(bytes))) return undefined;
    // Nobody else could have signed it.
    const [name, createdAt, hash, until] = JSON.parse(bytes.toString("utf8")) as [string, string, string, number];
    return until > now && HASH.test(hash) ? { app: { name, createdAt }, hash } : undefined;
  }

  #sign(said: Buffer): Buffer {
    return createHmac("sha256", this.#key).update(said).digest();
  }
}
