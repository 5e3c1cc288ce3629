/** Apps that are being deleted: nothing may be added to them, on any host. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { View } from "./cluster.ts";
import { KEYS } from "./keys.ts";

/** The part of an app's record that says so. */
export interface Deletable {
  deleting?: true;
}

/** Whether this host knows that the app's deletion has begun. */
export function isBeingDeleted(view: Pick<View, "value">, app: string): boolean {
  return (view.value(`${KEYS.apps}${app}`) as Deletable | undefined)?.deleting === true;
}

/** Throws `aborted` while the app is being deleted. */
export function requireLasting(view: Pick<View, "value">, app: string): void {
  if (isBeingDeleted(view, app)) throw beingDeleted(app);
}

/** The app's deletion has begun. */
export function beingDeleted(name: string): HibernautError {
  const message = `App ${name} is being deleted. If its deletion was interrupted, delete it again.`;
  return new HibernautError("aborted", message, { app_name: name });
}
