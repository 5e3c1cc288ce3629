/** Registries as the image store uses them: a reference in, a digest or a directory out. */
import { readFile } from "node:fs/promises";
import type { ImageProgress, Login } from "../contract.ts";
import type { LayerCache } from "../layers.ts";
import { readImageConfig } from "../manifest.ts";
import type { RegistryReference } from "../reference.ts";
import { type Room, requireRoom } from "../room.ts";
import type { Job } from "../shared.ts";
import { downloadAll } from "./download.ts";
import { Endpoint, mayBePlain } from "./endpoint.ts";
import { RegistryFault } from "./fault.ts";
import { writeFolder } from "./folder.ts";
import { fetchManifest, resolveAt } from "./manifest.ts";
import { type Patience, retrying } from "./patience.ts";
import { openTransport, type Transport } from "./request.ts";
import { Session } from "./session.ts";

/** What a {@link RegistryClient} works with. */
interface RegistryClientOptions {
  cache: LayerCache;
  room: Room;
  /** Registries, as `name` or `name:port`, that may use plain HTTP, in addition to those on loopback. */
  insecure: readonly string[];
  patience: Patience;
  /** Finds the login for a repository. Undefined for an anonymous request. */
  findLogin(host: string, repository: string): Promise<Login | undefined>;
}

/** One pull. */
interface Pull {
  /** The reference as the user wrote it, for messages. */
  ref: string;
  reference: RegistryReference;
  job: Job<ImageProgress>;
}

/** A client for registries (OCI distribution-spec 1.1, "Pull"), which also accepts Docker's manifests. */
export class RegistryClient {
  readonly #options: RegistryClientOptions;
  readonly #transport: Transport;

  constructor(options: RegistryClientOptions) {
    this.#options = options;
    this.#transport = openTransport(options.patience, (host) => mayBePlain(host, options.insecure));
  }

  /** Returns the digest of the manifest for linux/amd64 that the reference currently stands for. */
  async resolve({ ref, reference, job }: Pull): Promise<string> {
    const session = await this.#session(reference);
    return resolveAt(session, reference, ref, this.#options.patience, job.signal);
  }

  /** Downloads the image of that digest to a directory. */
  async fetch({ ref, reference, job }: Pull, digest: string, folder: string): Promise<void> {
    const { cache, patience, room } = this.#options;
    const session = await this.#session(reference);
    const manifest = await fetchManifest(session, reference, digest, ref, { patience, signal: job.signal });
    const { config, layers } = manifest;
    using _ = await cache.hold([config, ...layers].map((blob) => blob.digest));
    const download = { session, repository: reference.repository, cache, patience, signal: job.signal };
    // Only the configuration says which processor the image is for: check it before downloading gigabytes.
    await downloadAll({ ...download, blobs: [config], report: () => {} });
    readImageConfig(await readFile(cache.file(config.digest), "utf8"), ref);
    await requireRoom(layers, cache, room);
    await downloadAll({ ...download, blobs: layers, report: job.report });
    await writeFolder(folder, manifest, cache);
  }

  /** Rejects with a RegistryFault unless the registry accepts the login (distribution-spec, "end-1"). */
  async checkLogin(host: string, login: Login, signal: AbortSignal): Promise<void> {
    const endpoint = new Endpoint(host, this.#options.insecure);
    const session = new Session({ endpoint, transport: this.#transport, repository: "", login });
    const ask = async () => (await session.get("", {}, signal)).destroy();
    await retrying(ask, this.#options.patience, signal, 2);
    if (!session.authorized)
      throw new RegistryFault("unreachable", "it does not ask for a login, so the login cannot be checked");
  }

  async #session({ host, repository }: RegistryReference): Promise<Session> {
    const login = await this.#options.findLogin(host, repository);
    const endpoint = new Endpoint(host, this.#options.insecure);
    return new Session({ endpoint, transport: this.#transport, repository, login });
  }
}
