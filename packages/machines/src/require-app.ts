/** The check that everything of an app begins with: that the app exists. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppRecord } from "@hibernaut/domain/machine";
import type { AppStore } from "@hibernaut/store";

/** Returns the app. Throws `not_found` when it does not exist, with `advice` on what to do about that. */
export function requireApp(apps: AppStore, name: string, advice = "See `hibernaut apps list`."): AppRecord {
  const app = apps.get(name);
  if (app !== undefined) return app;
  throw new HibernautError("not_found", `There is no app ${name.slice(0, 80)}. ${advice}`, { app_name: name });
}
