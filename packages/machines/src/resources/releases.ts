/** Releases: which image and configuration of an app were deployed, and how the deployment ended. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { ReleaseRecord } from "@hibernaut/domain/machine";
import type { Store } from "@hibernaut/store";
import type { MachineDependencies } from "../dependencies.ts";
import { requireApp } from "../require-app.ts";

const ABANDONED = "The client that deployed it stopped reporting.";
/** More than the store keeps of an app: all of them. */
const ALL_RELEASES = 1000;

/**
 * A client that deploys reports at least every 15 s ({@link Releases.renew}). One that missed several reports is gone.
 */
const ABANDONED_AFTER_MS = 60_000;

interface ReleasesDependencies extends Pick<MachineDependencies, "images"> {
  store: Pick<Store, "apps" | "releases">;
  /** Whether the client of a release reports here. By default, it does. */
  isReportedHere?(app: string, version: number): boolean;
}

/** Records releases of apps. */
export class Releases {
  readonly #deps: ReleasesDependencies;
  readonly #now: () => number;
  /** When the client of a pending release last reported. Kept in memory: after a restart, every client gets its time. */
  readonly #reports: Map<string, number>;

  /** `now` is the monotonic clock, in milliseconds. */
  constructor(
    deps: ReleasesDependencies,
    now: () => number = () => performance.now(),
    reports = new Map<string, number>(),
  ) {
    this.#deps = deps;
    this.#now = now;
    this.#reports = reports;
  }

  /** Returns the same rules over other records of releases and apps. */
  over(other: Omit<ReleasesDependencies, "images">): Releases {
    return new Releases({ ...this.#deps, ...other }, this.#now, this.#reports);
  }

  /** Returns up to `limit` releases of the app, newest first. */
  list(app: string, limit: number): ReleaseRecord[] {
    const { store } = this.#deps;
    requireApp(store.apps, app);
    for (const { version, status } of store.releases.list(app, ALL_RELEASES))
      if (status === "pending" && this.#isReportedHere(app, version) && this.#isAbandoned(app, version))
        this.#finish(app, version, "abandoned", ABANDONED);
    return store.releases.list(app, limit);
  }

  /** Records that the client of a pending release is still deploying. Throws `not_found` when there is no such release. */
  renew(app: string, version: number): ReleaseRecord {
    const release = this.#find(app, version);
    if (release.status === "pending") this.#reports.set(keyOf(app, version), this.#now());
    return release;
  }

  /** Imports the image if necessary, and records that its deployment has begun. Changes no machine. */
  async begin(app: string, image: string, description: string): Promise<ReleaseRecord> {
    const { store, images } = this.#deps;
    requireApp(store.apps, app);
    const { digest } = await images.ensure(image);
    const createdAt = new Date().toISOString();
    // The import may have taken minutes, in which the app may have been deleted.
    requireApp(store.apps, app);
    const release = store.releases.add(app, { status: "pending", image, digest, description, createdAt });
    this.#reports.set(keyOf(app, release.version), this.#now());
    return release;
  }

  /** Records how a release ended. Throws `not_found` when there is no such release. */
  end(app: string, version: number, status: ReleaseRecord["status"], description: string): ReleaseRecord {
    const release = this.#find(app, version);
    this.#finish(app, version, status, description);
    return { ...release, status, description };
  }

  #find(app: string, version: number): ReleaseRecord {
    const { store } = this.#deps;
    requireApp(store.apps, app);
    const found = store.releases.list(app, ALL_RELEASES).find((release) => release.version === version);
    if (found !== undefined) return found;
    throw new HibernautError("not_found", `App ${app} has no release ${version}. See \`hibernaut releases\`.`);
  }

  #finish(app: string, version: number, status: ReleaseRecord["status"], description: string): void {
    this.#deps.store.releases.update(app, version, status, description);
    this.#reports.delete(keyOf(app, version));
  }

  #isReportedHere(app: string, version: number): boolean {
    return this.#deps.isReportedHere?.(app, version) ?? true;
  }

  #isAbandoned(app: string, version: number): boolean {
    const key = keyOf(app, version);
    const last = this.#reports.get(key);
    if (last === undefined) this.#reports.set(key, this.#now());
    return last !== undefined && this.#now() - last > ABANDONED_AFTER_MS;
  }
}

function keyOf(app: string, version: number): string {
  return `${app} ${version}`;
}
