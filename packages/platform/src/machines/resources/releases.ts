/** Releases: which image and configuration of an app were deployed, and how the deployment ended. */
import { HibernautError } from "../../domain/errors.ts";
import type { ReleaseRecord } from "../../domain/machine.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { requireApp } from "../require-app.ts";

/** How far back a release can be updated. Only the newest one ever is. */
const MOST_RELEASES = 1000;

/** Records releases of apps. */
export class Releases {
  readonly #deps: Pick<MachineDependencies, "store" | "images">;

  constructor(deps: Pick<MachineDependencies, "store" | "images">) {
    this.#deps = deps;
  }

  /** Returns up to `limit` releases of the app, newest first. */
  list(app: string, limit: number): ReleaseRecord[] {
    requireApp(this.#deps.store.apps, app);
    return this.#deps.store.releases.list(app, limit);
  }

  /** Imports the image if necessary, and records that its deployment has begun. Changes no machine. */
  async begin(app: string, image: string, description: string): Promise<ReleaseRecord> {
    const { store, images } = this.#deps;
    requireApp(store.apps, app);
    const { digest } = await images.ensure(image);
    const createdAt = new Date().toISOString();
    // The import may have taken minutes, in which the app may have been deleted.
    requireApp(store.apps, app);
    return store.releases.add(app, { status: "pending", image, digest, description, createdAt });
  }

  /** Records how a release ended. Throws `not_found` when there is no such release. */
  end(app: string, version: number, status: ReleaseRecord["status"], description: string): ReleaseRecord {
    const { store } = this.#deps;
    requireApp(store.apps, app);
    store.releases.update(app, version, status, description);
    const found = store.releases.list(app, MOST_RELEASES).find((release) => release.version === version);
    if (found !== undefined) return found;
    throw new HibernautError("not_found", `App ${app} has no release ${version}. See \`hibernaut releases\`.`);
  }
}
