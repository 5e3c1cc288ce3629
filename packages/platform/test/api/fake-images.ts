/** Images without images, for tests of what stands before them: every one takes two layers and a moment. */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "../../src/domain/errors.ts";
import type { EnsureOptions, Image, ImageLibrary, Login, RegistryLogins } from "../../src/images/contract.ts";

const LAYER_BYTES = 1_000_000;
/** A registry's answer takes longer than reading the request that asks for it. */
const ANSWER_MS = 10;
/** Longer than any test. */
const SILENCE_MS = 600_000;
const digestOf = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

/**
 * References with `missing` are in no registry, those with `damaged` turn out so at the end; of those with `silent`
 * nothing is ever heard.
 */
export class FakeImages implements ImageLibrary {
  readonly images = new Map<string, Image>();
  /** Pulls of which nothing is heard. */
  waiting = 0;

  async list() {
    const importedAt = new Date(0).toISOString();
    return [...this.images.values()].map(({ digest, ref, sizeBytes }) => ({
      digest,
      ref,
      sizeBytes,
      importedAt,
      inUse: false,
    }));
  }

  async pull(ref: string, { signal, onProgress = () => {} }: EnsureOptions = {}): Promise<Image> {
    if (ref.includes("missing")) throw new HibernautError("not_found", `There is no image ${ref.slice(0, 80)}.`);
    if (ref.includes("silent")) {
      this.waiting += 1;
      await delay(SILENCE_MS, undefined, signal && { signal }).finally(() => (this.waiting -= 1));
    }
    onProgress({ step: "resolve" });
    for (const [index, layer] of [digestOf(`${ref}1`), digestOf(`${ref}2`)].entries()) {
      const imageDoneBytes = (index + 1) * LAYER_BYTES;
      const bytes = {
        doneBytes: LAYER_BYTES,
        totalBytes: LAYER_BYTES,
        imageDoneBytes,
        imageTotalBytes: 2 * LAYER_BYTES,
      };
      onProgress({ step: "download", layer, ...bytes });
      await delay(1, undefined, signal && { signal });
    }
    if (ref.includes("damaged")) throw new HibernautError("invalid_argument", "The image is damaged. Push it again.");
    const config = { entrypoint: [], cmd: [], env: [], user: "", workingDir: "" };
    const image = { ref, digest: digestOf(ref), rootfs: "/nowhere", config, sizeBytes: 2 * LAYER_BYTES };
    this.images.set(image.digest, image);
    return image;
  }

  async prune() {
    const digests = [...this.images.keys()];
    this.images.clear();
    return { digests, freedBytes: digests.length * 2 * LAYER_BYTES };
  }
}

/** The password is `right`. A registry whose name begins with `silent` never answers. */
export class FakeRegistries implements RegistryLogins {
  readonly logins = new Map<string, string>();
  /** Logins that a registry is being asked about. */
  asking = 0;

  async list() {
    return [...this.logins].map(([host, username]) => ({ host, username }));
  }

  async get(host: string) {
    const username = this.logins.get(host);
    return username === undefined ? undefined : { host, username };
  }

  async put(host: string, { username, password }: Login, signal?: AbortSignal): Promise<void> {
    this.asking += 1;
    try {
      await delay(host.startsWith("silent") ? SILENCE_MS : ANSWER_MS, undefined, signal && { signal });
    } finally {
      this.asking -= 1;
    }
    if (password !== "right") throw new HibernautError("failed_precondition", "The registry does not take the login.");
    this.logins.set(host, username);
  }

  async delete(host: string): Promise<boolean> {
    return this.logins.delete(host);
  }
}
