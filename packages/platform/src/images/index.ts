/** Images: OCI references and archives in, root file systems out. */
import { join } from "node:path";
import type { ImageStore, RegistryLogins } from "./contract.ts";
import { foreignFiles, foreignLogin, LoginStore } from "./credentials.ts";
import type { ImageTools } from "./import.ts";
import { LayerCache } from "./layers.ts";
import { CheckedLogins } from "./logins.ts";
import { RegistryClient } from "./registry/client.ts";
import { PATIENCE, type Patience } from "./registry/patience.ts";
import { openStore } from "./store.ts";

export type { Image, ImageConfig, ImageProgress, ImageStore } from "./contract.ts";
export type { ImageTools } from "./import.ts";
export { Library, type LibraryOptions } from "./library.ts";

interface ImageStoreOptions {
  /** The platform's data folder; images go to `images/` in it, logins are in `registries.json`. */
  dataDir: string;
  /** Programs to use instead of those in PATH. */
  tools?: Partial<ImageTools>;
  /** Registries that may speak plain HTTP or show any certificate, `name` or `name:port`; those on loopback always may. */
  insecureRegistries?: readonly string[];
  /** Downloaded layers to keep for the next import, in MB. Default: 2048. */
  layerCacheMb?: number;
  /** How long registries may take. */
  patience?: Partial<Patience>;
  /** Where docker's and skopeo's files of logins are looked for. Default: this process's. */
  environment?: NodeJS.ProcessEnv;
}

const LAYER_CACHE_MB = 2048;

/**
 * Opens the image store. Needs skopeo, umoci and mksquashfs when an image is imported.
 *
 * @example
 * const images = await openImageStore({ dataDir: "/var/lib/hibernaut" });
 * const image = await images.ensure("docker-archive:/tmp/app.tar");
 */
export async function openImageStore(options: ImageStoreOptions): Promise<ImageStore> {
  return (await openImages(options)).images;
}

/** The image store together with the logins it uses. */
export async function openImages({
  dataDir,
  tools = {},
  insecureRegistries: insecure = [],
  layerCacheMb = LAYER_CACHE_MB,
  patience = {},
  environment = process.env,
}: ImageStoreOptions): Promise<{ images: ImageStore; logins: RegistryLogins }> {
  const programs = { skopeo: "skopeo", umoci: "umoci", mksquashfs: "mksquashfs", ...tools };
  const stored = new LoginStore(join(dataDir, "registries.json"));
  const findLogin = async (host: string, repository: string) => {
    const own = await stored.get(host);
    if (own !== undefined) return own;
    for (const file of foreignFiles(environment)) {
      const login = await foreignLogin(file, host, repository);
      if (login !== undefined) return login;
    }
    return undefined;
  };
  const layers = new LayerCache(join(dataDir, "images/blobs/sha256"), layerCacheMb * 1024 * 1024);
  const patient = { ...PATIENCE, ...patience };
  const client = new RegistryClient({ cache: layers, insecure, patience: patient, findLogin });
  const registries = { client, insecure, findLogin };
  const images = await openStore(join(dataDir, "images"), { tools: programs, registries, layers });
  return { images, logins: new CheckedLogins(stored, client, patient.loginMs) };
}
