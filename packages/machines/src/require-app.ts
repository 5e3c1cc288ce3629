/** The check that everything of an app begins with: that the app exists. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import type { AppStore } from "@hibernaut/store";

/**
 * Returns a function that throws `aborted` when the app is no longer the one that has this name now: it was deleted, and
 * another one may have been made. Throws `not_found` when it does not exist.
 */
export function sameApp(apps: AppStore, name: string): () => void {
  const app = requireApp(apps, name);
  return () => requireSame(apps, app);
}

/** Throws `aborted` when this app is no longer the one that has its name. */
export function requireSame(apps: AppStore, { name, createdAt }: Pick<AppRecord, "name" | "createdAt">): void {
  if (apps.get(name)?.createdAt === createdAt) return;
  throw new HibernautError("aborted", `App ${name} was deleted meanwhile. Nothing was made.`, { app_name: name });
}

/** Returns the app. Throws `not_found` when it does not exist, with `advice` on what to do about that. */
export function requireApp(apps: AppStore, name: string, advice = "See `hibernaut apps list`."): AppRecord {
  const app = apps.get(name);
  if (app !== undefined) return app;
  throw new HibernautError("not_found", `There is no app ${name.slice(0, 80)}. ${advice}`, { app_name: name });
}
