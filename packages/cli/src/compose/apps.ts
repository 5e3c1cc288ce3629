/** The apps of a project, as the platform has them. */
import type { App, HibernautClient, Machine } from "@hibernaut/client";
import { CliError } from "../failure.ts";
import { DIGEST_METADATA } from "./deploy-service.ts";

/** Returns the apps that share the project's network. */
export async function appsOf(client: HibernautClient, project: string): Promise<App[]> {
  return (await client.listApps()).filter(({ network }) => network?.name === project);
}

/** Whether compose made a machine, or it was made like one that compose made. */
export function isOfCompose({ config: { metadata = {} } }: Pick<Machine, "config">): boolean {
  return DIGEST_METADATA in metadata;
}

/** Rejects with `not_found` if the project has no apps. */
export async function requireApps(client: HibernautClient, project: string, preview?: string): Promise<App[]> {
  const apps = await appsOf(client, project);
  if (apps.length > 0) return apps;
  const option = preview === undefined ? "" : ` --preview ${preview}`;
  const what = preview === undefined ? `project ${project}` : `preview ${project}`;
  throw new CliError("not_found", `The ${what} has no apps. Start it: hibernaut compose up${option}`);
}

/** What people call an app of a project: its service. */
export function serviceOf(project: string, app: string): string {
  return app.startsWith(`${project}-`) ? app.slice(project.length + 1) : app;
}

/** Returns those of the apps that the words name, by service or by name. Throws `not_found` for a word that names none. */
export function named(apps: readonly App[], project: string, words: readonly string[]): App[] {
  if (words.length === 0) return [...apps];
  return words.map((word) => {
    const found = apps.find(
      ({ name, network }) => name === word || name === `${project}-${word}` || network?.aliases.includes(word),
    );
    if (found !== undefined) return found;
    const known = apps.map(({ name }) => serviceOf(project, name)).join(", ");
    throw new CliError("not_found", `The project ${project} has no service ${word}. It has ${known}.`);
  });
}
