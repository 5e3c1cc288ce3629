/** What a deploy is asked for: the app file and the command line together. */
import { CliError } from "../failure.ts";
import { pairs } from "../machine-config.ts";
import type { WantedGroup } from "./plan.ts";

export interface Deployment {
  /** As the app file names it. */
  app: string | undefined;
  groups: ReadonlyMap<string, WantedGroup>;
  image: string;
  strategy: "rolling" | "immediate";
}

export interface DeploymentOptions {
  config?: string;
  image?: string;
  env?: string[];
  strict?: boolean;
}

/** Reads the app file. Its warnings go to standard error; an error in it, or a warning with `strict`, ends the deploy. */
export async function readDeployment({ config, image, env, strict = false }: DeploymentOptions): Promise<Deployment> {
  const [{ readNamed, refusal }, { findingText }, { machineConfigs }] = await Promise.all([
    import("../appfile/named.ts"),
    import("../appfile/findings.ts"),
    import("../appfile/machine-configs.ts"),
  ]);
  const { name, file, findings } = await readNamed(config);
  for (const finding of findings) process.stderr.write(`${findingText(finding, name)}\n`);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  if (file === undefined || (strict && findings.length > 0)) throw refusal(name, errors, findings.length - errors);
  const groups = machineConfigs(file, { image, env: pairs("--env", env) });
  const [first] = groups.values();
  if (first === undefined) throw new CliError("invalid_argument", `${name} names no process to run.`);
  return { app: file.app, groups, image: first.config.image, strategy: file.deployStrategy ?? "rolling" };
}
