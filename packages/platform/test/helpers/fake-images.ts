/** Images and registries of a fake world: no files, no network, and an import of two layers. */
import { createHash } from "node:crypto";
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { splitPin } from "@hibernaut/domain/pinned";
import type {
  EnsureOptions,
  HeldImage,
  Image,
  ImageStore,
  Login,
  RegistryLogins,
  StoredImage,
} from "@hibernaut/images";
import { registryHost } from "../../../images/src/reference.ts";

const LAYER_BYTES = 1_000_000;
/** A registry takes longer to answer than the API takes to read the request. */
const ANSWER_MS = 10;
/** Longer than any test. */
const SILENCE_MS = 600_000;
const digestOf = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

/**
 * An image store in which every image exists, except for references with `missing` in them. References with `damaged`
 * fail at the end of the import, and those with `silent` never get an answer from their registry.
 */
export class FakeImages implements ImageStore {
  readonly #images = new Map<string, Image>();
  /** How many imports wait for a silent registry. */
  waiting = 0;

  async ensure(ref: string, { signal, onProgress = () => {} }: EnsureOptions = {}): Promise<Image> {
    if (ref.includes("missing")) throw new HibernautError("not_found", `There is no image ${ref.slice(0, 80)}.`);
    const { name, digest = digestOf(name) } = splitPin(ref);
    const image = imageOf(ref, digest);
    if (this.#images.has(image.digest)) return image;
    if (ref.includes("silent")) {
      this.waiting += 1;
      await delay(SILENCE_MS, undefined, signal && { signal }).finally(() => (this.waiting -= 1));
    }
    onProgress({ step: "resolve" });
    for (const layer of [1, 2]) {
      onProgress({
        step: "download",
        layer: digestOf(`${ref}${layer}`),
        doneBytes: LAYER_BYTES,
        totalBytes: LAYER_BYTES,
        imageDoneBytes: layer * LAYER_BYTES,
        imageTotalBytes: 2 * LAYER_BYTES,
      });
      await setImmediate(undefined, signal && { signal });
    }
    if (ref.includes("damaged")) throw new HibernautError("invalid_argument", "The image is damaged. Push it again.");
    this.#images.set(image.digest, image);
    return image;
  }

  async hold(ref: string, options?: EnsureOptions): Promise<HeldImage> {
    return { ...(await this.ensure(ref, options)), [Symbol.dispose]: () => {} };
  }

  /** Every image is here already. */
  async adopt(digest: string): Promise<HeldImage> {
    return { ...imageOf("any", digest), [Symbol.dispose]: () => {} };
  }

  /** Images that were imported in another life of the world are there too. */
  /** Makes this host's root file systems others than those of hosts that built the same images. */
  salt = "";

  async fingerprint(digest: string): Promise<string | undefined> {
    return `${this.salt}${digest}`;
  }

  async get(digest: string): Promise<Image | undefined> {
    return this.#images.get(digest) ?? imageOf("any", digest);
  }

  async list(): Promise<StoredImage[]> {
    const importedAt = new Date(0).toISOString();
    return [...this.#images.values()].map(({ digest, ref, sizeBytes }) => ({ digest, ref, sizeBytes, importedAt }));
  }

  async collect(inUse: () => ReadonlySet<string>): Promise<string[]> {
    const unused = [...this.#images.keys()].filter((digest) => !inUse().has(digest));
    for (const digest of unused) this.#images.delete(digest);
    return unused;
  }

  async dropLayers(): Promise<number> {
    return 0;
  }
}

function imageOf(ref: string, digest: string): Image {
  const config = { entrypoint: ["app"], cmd: [], env: [], user: "", workingDir: "/" };
  return { ref, digest, rootfs: "/nowhere", config, sizeBytes: 2 * LAYER_BYTES };
}

/** Logins for registries. The password is `right`. A registry whose name begins with `silent` never answers. */
export class FakeRegistries implements RegistryLogins {
  readonly logins = new Map<string, string>();
  /** How many logins wait for the answer of their registry. */
  asking = 0;

  async list() {
    return [...this.logins].map(([host, username]) => ({ host, username }));
  }

  async get(name: string) {
    const host = registryHost(name);
    const username = this.logins.get(host);
    return username === undefined ? undefined : { host, username };
  }

  async put(name: string, { username, password }: Login, signal?: AbortSignal): Promise<void> {
    // Like the real one, which then asks there.
    const { host } = new URL(`https://${registryHost(name)}/v2/`);
    this.asking += 1;
    try {
      await delay(host.startsWith("silent") ? SILENCE_MS : ANSWER_MS, undefined, signal && { signal });
    } finally {
      this.asking -= 1;
    }
    if (password !== "right") throw new HibernautError("failed_precondition", "The registry does not take the login.");
    this.logins.set(host, username);
  }

  async delete(name: string): Promise<boolean> {
    return this.logins.delete(registryHost(name));
  }
}
