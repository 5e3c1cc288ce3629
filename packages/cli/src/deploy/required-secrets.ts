/** The secrets that files of the machines are made from. */
import type { MachineConfig } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { CliError } from "../failure.ts";
import type { WantedGroup } from "./plan.ts";

/**
 * Rejects with `failed_precondition` if a file is made from a secret that the app does not have: a machine could not be
 * started with that, so nothing is changed.
 */
export async function requireSecrets(context: Context, groups: ReadonlyMap<string, WantedGroup>): Promise<void> {
  const files = [...groups.values()].flatMap(({ config }) => secretFiles(config));
  if (files.length === 0) return;
  const { app } = context;
  const known = new Set((await (await context.client()).listSecrets(app)).map(({ name }) => name));
  const missing = files.find(({ secret }) => !known.has(secret));
  if (missing === undefined) return;
  const { path, secret } = missing;
  throw new CliError(
    "failed_precondition",
    `App ${app} has no secret ${secret}, and the file ${path} is made from it. Nothing was changed. Set it: hibernaut secrets set ${secret}="$(base64 < file)" --app ${app}`,
  );
}

function secretFiles({ files = [] }: MachineConfig): { path: string; secret: string }[] {
  return files.flatMap(({ guest_path: path, secret_name: secret }) => (secret === undefined ? [] : [{ path, secret }]));
}
