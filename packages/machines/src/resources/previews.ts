/** Previews: apps that show for a while what another app would be. */
import type { AppNetwork } from "@hibernaut/domain/app-network";
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import { isPreviewOf, previewAppName, previewName } from "@hibernaut/domain/preview";
import type { AppStore } from "@hibernaut/store";
import type { AppDeletions } from "../app-deletions.ts";
import type { Quotas } from "../quotas.ts";
import { requireApp } from "../require-app.ts";
import { changedPlace, type NetworkPlace, newPlace } from "./app-place.ts";

interface PreviewsDependencies {
  apps: AppStore;
  /** What apps may have. By default, everything. */
  quotas?: Pick<Quotas, "requirePreview"> | undefined;
  /** What of this host is being deleted. By default nothing: the records of a cluster say so themselves. */
  deletions?: Pick<AppDeletions, "requireLasting">;
}

/** What a preview is to be. */
interface WantedPreview {
  name: string;
  /** RFC 3339. */
  expiresAt: string;
  /** Its place among the previews of the same name of the apps in its production's network. Default: as it is, at first none. */
  place?: Omit<NetworkPlace, "network"> | undefined;
}

/** Makes, renews and ends previews. Their apps are destroyed as any others. */
export class Previews {
  readonly #deps: PreviewsDependencies;

  constructor(deps: PreviewsDependencies) {
    this.#deps = deps;
  }

  /** Returns the same rules over other records. */
  over(deps: PreviewsDependencies): Previews {
    return new Previews(deps);
  }

  /**
   * Returns the app that is a preview of another one, from now on until `expiresAt`. Makes it if there is none, with the
   * limits that its production has of its own. Throws `invalid_argument` for names that it cannot have,
   * `failed_precondition` when the app is a preview itself, may have no more of them, or cannot have the place, and
   * `already_exists` when another app has one of its names.
   */
  put(of: string, { name, expiresAt, place }: WantedPreview): AppRecord {
    const { apps, quotas, deletions } = this.#deps;
    const production = requireApp(apps, of);
    const { createdAt: ofCreatedAt, quota, preview: itself } = production;
    if (itself !== undefined)
      throw new HibernautError(
        "failed_precondition",
        `App ${of} is a preview itself. Make another preview of ${itself.of} instead.`,
        { app_name: of, preview_of: itself.of },
      );
    const full = previewAppName(name, of);
    const present = apps.get(full);
    const preview = { of, ofCreatedAt, expiresAt };
    if (present === undefined) {
      quotas?.requirePreview(of);
      const network = place && newPlace(full, { ...place, network: this.#networkOf(production, name) }, apps);
      const createdAt = new Date().toISOString();
      apps.insert({ name: full, createdAt, ...(quota && { quota }), ...(network && { network }), preview });
    } else {
      requireRenewable(present, production);
      deletions?.requireLasting(full);
      if (place !== undefined) apps.setNetwork(full, changedPlace(full, requireNetwork(present), place, apps));
      apps.setPreview(full, preview);
    }
    return requireApp(apps, full);
  }

  /** The network of the previews of that name, in which there is nothing else. */
  #networkOf({ name: of, network }: AppRecord, name: string): string {
    if (network === undefined)
      throw new HibernautError(
        "failed_precondition",
        `App ${of} is in no network, so a preview of it has nobody to share one with. Leave \`network\` out.`,
        { app_name: of },
      );
    const own = previewAppName(name, network.name);
    const isOfPreview = ({ name: app, preview }: AppRecord) =>
      preview !== undefined && previewName({ name: app, preview }) === name;
    const stranger = this.#deps.apps.inNetwork(own).find((app) => !isOfPreview(app));
    if (stranger === undefined) return own;
    throw new HibernautError(
      "already_exists",
      `The network ${own} has app ${stranger.name}, which does not belong to preview ${name}, and would be within reach of what is tried out. Choose another name for the preview, or destroy that app first.`,
      { network: own, app_name: stranger.name },
    );
  }

  /** Throws `not_found` when the app has no preview of that name. */
  get(of: string, name: string): AppRecord {
    const production = requireApp(this.#deps.apps, of);
    const app = this.#deps.apps.get(previewAppName(name, of));
    if (app !== undefined && isPreviewOf(app, production)) return app;
    const message = `App ${of} has no preview ${name}. See \`hibernaut previews list --app ${of}\`.`;
    throw new HibernautError("not_found", message, { app_name: of, preview: name });
  }

  /** Lists the previews of an app, by name. */
  list(of: string): AppRecord[] {
    const production = requireApp(this.#deps.apps, of);
    return this.#deps.apps.list().filter((app) => isPreviewOf(app, production));
  }

  /** Decides that the time of a preview is over. False when it was renewed meanwhile, or is gone. */
  expire({ name, preview: seen }: AppRecord): boolean {
    const { apps } = this.#deps;
    const preview = apps.get(name)?.preview;
    if (preview === undefined || preview.expiresAt !== seen?.expiresAt) return false;
    if (preview.expired !== true) apps.setPreview(name, { ...preview, expired: true });
    return true;
  }
}

function requireRenewable(app: AppRecord, production: AppRecord): void {
  const { name, preview } = app;
  if (!isPreviewOf(app, production)) {
    const what = preview?.of === production.name ? "a preview of an earlier app of that name" : "another app";
    throw new HibernautError(
      "already_exists",
      `${name} is already the name of ${what}. Choose another name for the preview, or destroy that one first: \`hibernaut apps destroy ${name}\`.`,
      { app_name: name },
    );
  }
  if (preview?.expired !== true) return;
  throw new HibernautError(
    "aborted",
    `The time of preview ${name} was over, and it is being destroyed. Try again in a moment.`,
    { app_name: name },
  );
}

/** An app gets its network when it is made: machines that it has by then would not be in it. */
function requireNetwork({ name, network }: AppRecord): AppNetwork {
  if (network !== undefined) return network;
  throw new HibernautError(
    "failed_precondition",
    `Preview ${name} was made without a network, and gets none later. Destroy it first: \`hibernaut apps destroy ${name}\`.`,
    { app_name: name },
  );
}
