/** The limits of an app in a form. Pure. */
import type { Quota } from "@hibernaut/client/browser";

/** A limit's name. */
export type Limit = keyof Quota["limits"];

/** What the field of a limit contains at first. Empty: the platform's. */
export function limitText({ limits, own }: Pick<Quota, "limits" | "own">, name: Limit): string {
  return own.includes(name) ? String(limits[name]) : "";
}

/** The limits whose fields someone has changed, for the API. Null: the platform's. */
export function limitChanges(
  quota: Pick<Quota, "limits" | "own">,
  text: (name: Limit) => string,
): Partial<Record<Limit, number | null>> {
  const names = (Object.keys(quota.limits) as Limit[]).filter((name) => text(name) !== limitText(quota, name));
  return Object.fromEntries(names.map((name) => [name, text(name) === "" ? null : Number(text(name))]));
}
