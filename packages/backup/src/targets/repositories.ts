/** Opens the repositories of targets: with their credentials, and with what is kept at hand of them on this host. */
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { sealText, unsealText, type Vault } from "@hibernaut/secrets";
import { openAccess, type ResticPlace, type TargetSecrets } from "./access.ts";
import { boundCache, clearTemporary, RESTIC_FOLDER } from "./cache.ts";
import { parseLocation } from "./location.ts";
import { MANIFESTS_FOLDER, ManifestCache } from "./manifest-cache.ts";
import { Repository } from "./repository.ts";
import { KNOWN_HOSTS_FILE, type TargetRecord } from "./target-file.ts";

interface Options {
  dataDir: string;
  /** The name or the path of restic. */
  restic: string;
  vault: Vault;
}

/** Where a repository is, and what opens it. */
export interface Opening {
  url: string;
  secrets: TargetSecrets;
}

/** The repositories of one platform. */
export class Repositories {
  readonly #vault: Vault;
  readonly #place: ResticPlace;
  readonly #manifests: ManifestCache;

  constructor({ dataDir, restic, vault }: Options) {
    const folder = join(dataDir, RESTIC_FOLDER);
    this.#vault = vault;
    this.#place = { program: restic, folder, knownHosts: join(dataDir, KNOWN_HOSTS_FILE) };
    this.#manifests = new ManifestCache(join(folder, MANIFESTS_FOLDER));
  }

  /** The directory of what is kept at hand. It may be deleted whenever nothing runs. */
  get folder(): string {
    return this.#place.folder;
  }

  /** Opens the repository of a target for as long as it is used. */
  open<T>(target: TargetRecord, signal: AbortSignal, use: (repository: Repository) => Promise<T>): Promise<T> {
    const { name, url, sealed } = target;
    const secrets = JSON.parse(unsealText(this.#vault, sealedAs(name), sealed)) as TargetSecrets;
    return this.reach({ url, secrets }, signal, use);
  }

  /** Does the same with credentials that are not stored yet. */
  async reach<T>(
    { url, secrets }: Opening,
    signal: AbortSignal,
    use: (repository: Repository) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    await using open = await openAccess(parseLocation(url), secrets, this.#place);
    return await use(new Repository(open.access, this.#manifests));
  }

  /** Opens the repository of a new target, or makes it where there is none and a new key is used. */
  async openOrMake(opening: Opening, signal: AbortSignal, isNewKey: boolean): Promise<void> {
    await this.reach(opening, signal, async (repository) => {
      const isThere = await repository.isThere(signal).catch((error: unknown) => {
        if (!isNewKey || !(error instanceof HibernautError) || !/is not its key/.test(error.message)) throw error;
        const message = `${opening.url} has a repository already, which only its key opens. Give it with --key-file, over HTTP \`key\`, or use another place.`;
        throw new HibernautError("failed_precondition", message, { field: "key" });
      });
      if (!isThere) await repository.create(signal);
    });
  }

  /** Returns the credentials of a target as they are stored. */
  seal(name: string, secrets: TargetSecrets): string {
    return sealText(this.#vault, sealedAs(name), JSON.stringify(secrets));
  }

  /** Deletes what a platform that was killed left. */
  async clear(): Promise<void> {
    await clearTemporary(this.folder);
  }

  /** Deletes what takes too much room of what is kept at hand. */
  async bound(): Promise<void> {
    await boundCache(this.folder);
    await this.#manifests.bound();
  }
}

function sealedAs(name: string): string {
  return `backup target ${name}`;
}
