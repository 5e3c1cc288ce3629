/** Previews: apps that show for a while what another app would be. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import { isPreviewOf, previewAppName } from "@hibernaut/domain/preview";
import type { AppStore } from "@hibernaut/store";
import type { Quotas } from "../quotas.ts";
import { requireApp } from "../require-app.ts";

interface PreviewsDependencies {
  apps: AppStore;
  /** What apps may have. By default, everything. */
  quotas?: Pick<Quotas, "requirePreview"> | undefined;
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
   * limits that its production has of its own. Throws `invalid_argument` for a name that it cannot have,
   * `failed_precondition` when the app is a preview itself or may have no more of them, and `already_exists` when another
   * app has its name.
   */
  put(of: string, { name, expiresAt }: { name: string; expiresAt: string }): AppRecord {
    const { apps, quotas } = this.#deps;
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
      apps.insert({ name: full, createdAt: new Date().toISOString(), ...(quota && { quota }), preview });
    } else {
      requireRenewable(present, production);
      apps.setPreview(full, preview);
    }
    return requireApp(apps, full);
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
