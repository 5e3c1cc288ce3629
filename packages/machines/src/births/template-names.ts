/** Names of templates: which are valid, and what is said of one that is taken. */
import { HibernautError } from "@hibernaut/domain/errors";
import { isValidName, NAME_RULE } from "@hibernaut/domain/naming";
import type { TemplateRecord } from "@hibernaut/domain/template";
import type { MachineDependencies } from "../dependencies.ts";

/** Rejects with `invalid_argument` or `already_exists` when no template of the app can get the name, on any host. */
export async function requireTemplateName(
  { store, templateClaims }: Pick<MachineDependencies, "store" | "templateClaims">,
  app: string,
  name: string | undefined,
): Promise<void> {
  if (name === undefined) return;
  if (!isValidName(name))
    throw new HibernautError("invalid_argument", `A template's name ${NAME_RULE}.`, { field: "name", value: name });
  requireFreeName(store, app, name);
  await templateClaims?.requireFree(app, name);
}

/** Throws `already_exists` when a template of the app has the name on this host. */
export function requireFreeName(
  { templates }: Pick<MachineDependencies["store"], "templates">,
  app: string,
  name: string,
): void {
  const holder = templates.list(app).find((one) => one.name === name);
  if (holder !== undefined) throw nameTaken(app, name, holder.id);
}

/** Another template of the app has the name. */
export function nameTaken(app: string, name: string, holder: string): HibernautError {
  const message = `App ${app} already has a template named ${name} (${holder}). Choose another name, or delete it first.`;
  return new HibernautError("already_exists", message, { template: holder });
}

/** This host has another template of the name of one that would come here. */
export function nameTakenHere({ id, app, name }: Pick<TemplateRecord, "id" | "app" | "name">): HibernautError {
  const message = `This host has another template named ${name} of app ${app}, from before names were those of all hosts. Delete that one first, by its ID.`;
  return new HibernautError("failed_precondition", message, { template: id });
}
