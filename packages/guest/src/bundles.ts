/**
 * Guest bundles in the data directory. The bundle that the setup built is copied there, so that machines created with
 * it still boot after the setup has built a newer one.
 */
import { cp, mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { UNRECORDED_PROTOCOL } from "@hibernaut/domain/agent-protocol";
import { HibernautError } from "@hibernaut/domain/errors";
import type { GuestBundle } from "@hibernaut/domain/guest-bundle";
import { flush } from "@hibernaut/lib/durable";
import { Type } from "typebox";
import { Value } from "typebox/value";

const Description = Type.Object({
  version: Type.String({ minLength: 1 }),
  image: Type.Optional(Type.String()),
  protocol: Type.Optional(Type.Integer()),
});

/** The guest bundles that machines of this platform boot from. */
export class BundleStore {
  /** The bundle of new machines. */
  readonly current: GuestBundle;
  readonly #bundles: Map<string, GuestBundle>;
  readonly #folder: string;

  private constructor(folder: string, current: GuestBundle, bundles: Map<string, GuestBundle>) {
    this.#folder = folder;
    this.current = current;
    this.#bundles = bundles;
  }

  /**
   * Opens `<dataDir>/bundles` and copies the bundle at `built` there. Rejects with `failed_precondition` when `built`
   * doesn't contain a bundle.
   */
  static async open(dataDir: string, built: string): Promise<BundleStore> {
    const folder = join(dataDir, "bundles");
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { version } = await readBundle(built);
    if (!(await readdir(folder)).includes(version)) {
      const draft = join(folder, `tmp-${process.pid}-${version}`);
      await cp(built, draft, { recursive: true });
      // On the disk before it has its name: a power cut may keep a name and lose the content, and nothing would copy it again.
      for (const name of await readdir(draft)) await flush(join(draft, name));
      await flush(draft);
      await rename(draft, join(folder, version));
      await flush(folder);
    }
    const bundles = new Map<string, GuestBundle>();
    for (const name of await readdir(folder)) {
      if (name.startsWith("tmp-")) await rm(join(folder, name), { recursive: true, force: true });
      else bundles.set(name, await readBundle(join(folder, name)));
    }
    return new BundleStore(folder, bundles.get(version) as GuestBundle, bundles);
  }

  /** Returns the bundle with that version, if there is one. */
  get(version: string): GuestBundle | undefined {
    return this.#bundles.get(version);
  }

  /** Deletes every bundle that is neither current nor in `inUse`. */
  async collect(inUse: ReadonlySet<string>): Promise<void> {
    for (const version of this.#bundles.keys()) {
      if (version === this.current.version || inUse.has(version)) continue;
      this.#bundles.delete(version);
      await rm(join(this.#folder, version), { recursive: true, force: true });
    }
  }
}

/**
 * Returns the bundle in a directory: the kernel, `initrd`, and `bundle.json` with the version, and with the kernel's file
 * name and the agent's protocol, which bundles of 0.1 do not have.
 */
export async function readBundle(folder: string): Promise<GuestBundle> {
  const text = await readFile(join(folder, "bundle.json"), "utf8").catch(() => {
    throw new HibernautError(
      "failed_precondition",
      `There is no guest bundle in ${folder}. Build it with \`npm run setup\`.`,
    );
  });
  const { version, image = "vmlinuz", protocol = UNRECORDED_PROTOCOL } = parseDescription(text, folder);
  return { version, protocol, kernel: join(folder, image), initrd: join(folder, "initrd") };
}

/** Earlier versions did not flush what they copied, so a power cut could leave empty files. */
function parseDescription(text: string, folder: string): { version: string; image?: string; protocol?: number } {
  try {
    const described = JSON.parse(text) as unknown;
    if (Value.Check(Description, described)) return described;
  } catch {
    // As damaged as one that lacks its version.
  }
  throw new HibernautError(
    "failed_precondition",
    `The guest bundle in ${folder} is damaged: its bundle.json is not readable. Move the directory away and try again. The platform copies the bundle that the setup built again; if a machine needs an older one, its start says what to do.`,
  );
}
