/** The birth of one machine from a template, which must be there until it is over. */
import { HibernautError } from "@hibernaut/domain/errors";
import { findNamed } from "@hibernaut/domain/naming";
import type { TemplateRecord } from "@hibernaut/domain/template";
import type { MachineController } from "../controller.ts";
import type { MachineDependencies } from "../dependencies.ts";
import { requireApp } from "../require-app.ts";
import type { Drain } from "../resources/drain.ts";
import { type BirthContext, type Births, bear, requireBirths } from "./bear.ts";
import { requireWhole, type Seed } from "./seed.ts";

/** What births from templates take place with. */
export interface TemplateBirths extends Omit<BirthContext, "requireStill"> {
  drain: Pick<Drain, "refuseWork" | "subscribe">;
}

/**
 * Makes a machine that sleeps with the state of the template. Rejects as the creation of machines does; then there is none.
 * `starts`: it is started at once, so the host must have room for it.
 */
export async function bearFrom(
  { deps, controllers, copying, counts, drain }: TemplateBirths,
  { app, id, machine }: TemplateRecord,
  { starts, ...birth }: Omit<Births, "count"> & { starts: boolean },
  signal: AbortSignal,
): Promise<MachineController> {
  const requireStill = () => {
    drain.refuseWork();
    // Deleted with its app, too.
    requireTemplate(deps, app, id);
  };
  const context = { deps, controllers, copying, counts, requireStill };
  const births = { ...birth, count: 1 };
  const seed = seedOf({ id, machine }, deps);
  const making = async () => {
    await requireBirths(context, seed, births, { starts, drafts: 0 });
    await requireWhole(seed, deps, signal);
    return bear(context, seed, births, signal);
  };
  const [born] = await making().catch((error: unknown) => {
    requireTemplate(deps, app, id); // says that it was deleted, if that is why
    throw error;
  });
  if (born === undefined) throw new Error("nothing was born");
  return born;
}

/** What is born from a template, or restored from it, begins with. */
export function seedOf(
  { id, machine }: Pick<TemplateRecord, "id" | "machine">,
  { files }: Pick<MachineDependencies, "files">,
): Seed {
  const origin = { kind: "template", machine: machine.id, template: id } as const;
  return { folder: files.seeds.folder(id), record: machine, origin };
}

/** Throws `failed_precondition` when the app's secrets have changed since: what has the template's memory would start cold. */
export function requireSameSecrets(
  { id, app, machine }: TemplateRecord,
  { secrets }: Pick<MachineDependencies, "secrets">,
): void {
  if ((machine.snapshot?.secrets ?? "") === secrets.version(app)) return;
  const message =
    "The app's secrets have changed since the template was made, so that its memory cannot be used. Make a new template.";
  throw new HibernautError("failed_precondition", message, { template: id });
}

/** Returns the template of the app that `word` refers to: by id, by name, or by the beginning of its id. Throws `not_found`. */
export function requireTemplate(
  { store }: Pick<MachineDependencies, "store">,
  app: string,
  word: string,
): TemplateRecord {
  requireApp(store.apps, app);
  const found = findNamed(word, store.templates.list(app), { noun: "template" });
  if (found !== undefined) return found;
  const message = `App ${app} has no template ${word.slice(0, 80)}. See \`hibernaut templates list --app ${app}\`.`;
  throw new HibernautError("not_found", message, { app_name: app, template: word });
}
