/** What a deploy should do, according to the app file and the options. */
import type { MachineConfig } from "@hibernaut/client";
import type { Context } from "../context.ts";
import { CliError } from "../failure.ts";
import { pairs } from "../machine-config.ts";
import type { Deploy } from "../appfile/model.ts";
import type { WantedGroup } from "./plan.ts";

interface Deployment {
  /** As the app file names it. */
  app: string | undefined;
  groups: ReadonlyMap<string, WantedGroup>;
  image: string;
  /** `[deploy]` of the file. */
  deploy: Deploy;
  /** What runs before any machine is changed. */
  release: { config: MachineConfig; timeout: number | undefined } | undefined;
}

interface DeploymentOptions {
  config?: string;
  image?: string;
  env?: string[];
  strict?: boolean;
}

/** Reads the app file. Prints its warnings; an error, or with `strict` a warning, ends the deploy. */
export async function readDeployment(
  context: Context,
  { config, image, env, strict = false }: DeploymentOptions,
): Promise<Deployment> {
  const [{ readNamed, unusable }, { findingText }, { machineConfigs, releaseConfig }, { withLocalFiles }] =
    await Promise.all([
      import("../appfile/named.ts"),
      import("../appfile/findings.ts"),
      import("../appfile/machine-configs.ts"),
      import("../appfile/files.ts"),
    ]);
  const { name, file, findings } = await readNamed(config);
  for (const finding of findings) context.say(findingText(finding, name));
  const errors = findings.filter(({ severity }) => severity === "error").length;
  if (file === undefined || (strict && findings.length > 0)) throw unusable(name, errors, findings.length - errors);
  const complete = withLocalFiles(file, name);
  const overrides = { image, env: pairs("--env", env) };
  const groups = machineConfigs(complete, overrides);
  const [first] = groups.values();
  if (first === undefined) throw new CliError("invalid_argument", `${name} defines no process to run.`);
  const release = releaseConfig(complete, { ...overrides, image: first.config.image });
  return {
    app: file.app,
    groups,
    image: first.config.image,
    deploy: file.deploy,
    release: release && { config: release, timeout: file.deploy.releaseCommand?.timeout },
  };
}
