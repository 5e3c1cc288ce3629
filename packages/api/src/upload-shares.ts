/** How many of the uploads that are open belong to the tokens of one app: all apps share the platform's places for uploads. */
import { createHash } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import type { OpenUpload } from "@hibernaut/images";
import type { TokenRecord } from "@hibernaut/store";

/** Counts what tokens that are limited to apps have begun since the platform started. What is older belongs to nobody. */
export class UploadShares {
  readonly #most: number;
  /** The apps of the token that began an upload, by its digest. */
  readonly #apps = new Map<string, readonly string[]>();
  /** Digests of uploads that are about to be open. */
  readonly #beginning = new Set<string>();

  /** @param most for each app; 0: no limit */
  constructor(most: number) {
    this.#most = most;
  }

  /** Does `begin` unless an app of the token has as many uploads open as it may have: `resource_exhausted`. */
  async begin<T>(
    { token, manifest }: { token: TokenRecord | null; manifest: string },
    open: () => Promise<readonly Pick<OpenUpload, "digest">[]>,
    begin: () => Promise<T>,
  ): Promise<T> {
    // Those for previews have a share of their own: it is neither without limit, nor that of the app.
    const apps = token?.previewsOf?.map((of) => `previews of ${of}`) ?? token?.apps ?? null;
    if (apps === null || this.#most === 0) return begin();
    const digest = `sha256:${createHash("sha256").update(manifest).digest("hex")}`;
    const present = new Set((await open()).map((each) => each.digest));
    for (const each of this.#apps.keys()) if (!present.has(each) && !this.#beginning.has(each)) this.#apps.delete(each);
    if (!present.has(digest)) for (const app of apps) this.#require(app);
    if (!this.#apps.has(digest)) this.#apps.set(digest, apps);
    this.#beginning.add(digest);
    try {
      return await begin();
    } finally {
      this.#beginning.delete(digest);
    }
  }

  #require(app: string): void {
    const used = [...this.#apps.values()].filter((apps) => apps.includes(app)).length;
    if (used < this.#most) return;
    const message = `${used} uploads for ${app.includes(" ") ? app : `app ${app}`} have not ended, the most there can be (HIBERNAUT_QUOTA_UPLOADS). Finish or cancel one, then try again.`;
    throw new HibernautError("resource_exhausted", message, {
      app_name: app,
      quota: "uploads",
      limit: this.#most,
      used,
    });
  }
}
