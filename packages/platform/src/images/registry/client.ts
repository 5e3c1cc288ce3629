/** Registries as the image store sees them: a reference in, a digest or a folder for skopeo out. */
import { readFile } from "node:fs/promises";
import type { ImageProgress, Login } from "../contract.ts";
import type { LayerCache } from "../layers.ts";
import { readImageConfig } from "../manifest.ts";
import type { RegistryReference } from "../reference.ts";
import type { Job } from "../shared.ts";
import { downloadAll } from "./download.ts";
import { Endpoint, mayBePlain } from "./endpoint.ts";
import { RegistryFault } from "./fault.ts";
import { writeFolder } from "./folder.ts";
import { fetchManifest, resolveAt } from "./manifest.ts";
import { type Patience, retrying } from "./patience.ts";
import { openTransport, type Transport } from "./request.ts";
import { Session } from "./session.ts";

/** What a client of registries is made of. */
interface RegistryClientOptions {
  cache: LayerCache;
  /** `name` or `name:port` of registries that may speak plain HTTP, beside those on loopback. */
  insecure: readonly string[];
  patience: Patience;
  /** The login for a repository; undefined asks as anybody. */
  findLogin(host: string, repository: string): Promise<Login | undefined>;
}

/** One pull. */
interface Pull {
  /** As the user wrote it, for messages. */
  ref: string;
  reference: RegistryReference;
  job: Job<ImageProgress>;
}

/** Asks registries (OCI distribution-spec 1.1, "Pull"; Docker's manifests too). */
export class RegistryClient {
  readonly #options: RegistryClientOptions;
  readonly #transport: Transport;

  constructor(options: RegistryClientOptions) {
    this.#options = options;
    this.#transport = openTransport(options.patience, (host) => mayBePlain(host, options.insecure));
  }

  /** The digest of the manifest for linux/amd64 that the reference stands for now. */
  async resolve({ ref, reference, job }: Pull): Promise<string> {
    const session = await this.#session(reference);
    return resolveAt(session, reference, ref, this.#options.patience, job.signal);
  }

  /** Downloads the image of that digest to `folder`, as skopeo's `dir:` reads it. */
  async fetch({ ref, reference, job }: Pull, digest: string, folder: string): Promise<void> {
    const { cache, patience } = this.#options;
    const session = await this.#session(reference);
    const manifest = await fetchManifest(session, reference, digest, ref, { patience, signal: job.signal });
    const { config, layers } = manifest;
    using _ = await cache.hold([config, ...layers].map((blob) => blob.digest));
    const download = { session, repository: reference.repository, cache, patience, signal: job.signal };
    // The configuration alone says for which processor the image is: before gigabytes of it are here.
    await downloadAll({ ...download, blobs: [config], report: () => {} });
    readImageConfig(await readFile(cache.file(config.digest), "utf8"), ref);
    await downloadAll({ ...download, blobs: layers, report: job.report });
    await writeFolder(folder, manifest, cache);
  }

  /** Rejects with a RegistryFault unless the registry takes the login (distribution-spec, "end-1"). */
  async checkLogin(host: string, login: Login, signal: AbortSignal): Promise<void> {
    const endpoint = new Endpoint(host, this.#options.insecure);
    const session = new Session({ endpoint, transport: this.#transport, repository: "", login });
    const ask = async () => (await session.get("", {}, signal)).destroy();
    await retrying(ask, this.#options.patience, signal, 2);
    if (!session.authorized) throw new RegistryFault("unreachable", "it asks for no login, so none can be proved");
  }

  async #session({ host, repository }: RegistryReference): Promise<Session> {
    const login = await this.#options.findLogin(host, repository);
    const endpoint = new Endpoint(host, this.#options.insecure);
    return new Session({ endpoint, transport: this.#transport, repository, login });
  }
}
