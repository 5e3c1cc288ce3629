/** The routes of Fly's API as they are registered, with the schemas of their bodies. */
import type { TSchema } from "typebox";
import { allRoutes } from "../src/routes/all.ts";

export interface FlyRoute {
  method: string;
  /** Below `/v1`, such as `/apps/:app_name`. */
  url: string;
  body: TSchema | undefined;
}

export function registered(): FlyRoute[] {
  const found: FlyRoute[] = [];
  allRoutes((method, url, { body }) => void found.push({ method, url, body }));
  return found;
}

/** The path with names in it. */
export function pathOf(url: string, names: Readonly<Record<string, string>>): string {
  return `/v1${url.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(names[name] ?? "nothing"))}`;
}
