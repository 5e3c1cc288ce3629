/** A template of this host, as other hosts of the cluster are told of it. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { TemplateRecord } from "@hibernaut/domain/template";
import type { MachineDependencies } from "../dependencies.ts";
import type { MadeTemplate } from "../template-claims.ts";
import { generationIn } from "./seed.ts";

/** A template of this host as it was made. Rejects with `failed_precondition` when its memory cannot be used any more. */
export async function madeOf(
  template: TemplateRecord,
  { files, snapshots }: Pick<MachineDependencies, "files" | "snapshots">,
): Promise<MadeTemplate> {
  const folder = files.seeds.folder(template.id);
  const taken = await snapshots.takenIn(generationIn(folder, template.machine));
  if (typeof taken !== "string") return { template, folder, contents: files.seeds.contents(template.id), taken };
  const message = `Template ${template.id} cannot be used any more: ${taken}. Delete it, and make a new one.`;
  throw new HibernautError("failed_precondition", message, { template: template.id });
}
