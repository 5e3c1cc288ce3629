/** What a deploy should do, according to the app file and the options. */
import type { MachineConfig } from "@hibernaut/client";
import type { AppFile, Deploy } from "../appfile/model.ts";
import type { Built } from "../build/build.ts";
import type { BuildOptions } from "../build/options.ts";
import type { Context } from "../context.ts";
import { CliError, UsageError } from "../failure.ts";
import { pairs } from "../machine-config.ts";
import { isValidName, NAME_RULE } from "../names.ts";
import type { WantedGroup } from "./plan.ts";

/** What is deployed. */
export interface Deployment {
  /** As the app file names it. */
  app: string | undefined;
  groups: ReadonlyMap<string, WantedGroup>;
  image: string;
  /** Undefined if the image was made elsewhere. */
  built: Built | undefined;
  /** `[deploy]` of the file. */
  deploy: Deploy;
  /** Whether anyone may see how the app is. Undefined: as it was. */
  statusPage: boolean | undefined;
  /** What runs before any machine is changed. */
  release: { config: MachineConfig; timeout: number | undefined } | undefined;
}

/** What the options of the command say about that. */
export interface DeploymentOptions extends BuildOptions {
  config?: string;
  image?: string;
  env?: string[];
  strict?: boolean;
  /** No app is needed for that. */
  buildOnly?: boolean;
  /** The name of the preview that is deployed to, in place of the app. */
  preview?: string;
  /** Where the app was found to listen, if the file does not name a port. */
  port?: number | undefined;
}

/**
 * Reads the app file, and builds the image if neither the file nor an option names one. Prints the file's warnings; an
 * error, or with `strict` a warning, ends the deploy.
 */
export async function readDeployment(
  context: Context,
  { config, image: named, env, strict = false, preview, port, ...building }: DeploymentOptions,
): Promise<Deployment> {
  const [
    { readNamed, unusable },
    { portOfMachines },
    { findingText },
    { machineConfigs, releaseConfig },
    { withLocalFiles },
  ] = await Promise.all([
    import("../appfile/named.ts"),
    import("./found-port.ts"),
    import("../appfile/findings.ts"),
    import("../appfile/machine-configs.ts"),
    import("../appfile/files.ts"),
  ]);
  const { name, file: written, findings } = await readNamed(config);
  for (const finding of findings) context.say(findingText(finding, name));
  const errors = findings.filter(({ severity }) => severity === "error").length;
  if (written === undefined || (strict && findings.length > 0)) throw unusable(name, errors, findings.length - errors);
  let file = written;
  if (building.buildOnly !== true) {
    const ofApp = context.preferring(written.app);
    requireApp(ofApp.app);
    const known = port ?? (await portOfMachines(ofApp.inPreview(preview), written));
    if (known !== undefined) ({ file = written } = await readNamed(config, { port: known }));
  }
  const complete = withLocalFiles(file, name);
  const variables = pairs("--env", env);
  const built =
    named === undefined && file.image === undefined ? await buildOf(context, complete, name, building) : undefined;
  const image = named ?? file.image ?? built?.image;
  if (image === undefined) throw new Error("neither an image nor a build");
  const overrides = { image, env: variables };
  const groups = machineConfigs(complete, overrides);
  const [first] = groups.values();
  if (first === undefined) throw new CliError("invalid_argument", `${name} defines no process to run.`);
  const release = releaseConfig(complete, overrides);
  return {
    app: file.app,
    groups,
    image,
    built,
    deploy: file.deploy,
    statusPage: file.statusPage,
    release: release && { config: release, timeout: file.deploy.releaseCommand?.timeout },
  };
}

/** Before a build takes minutes. */
function requireApp(app: string): void {
  if (!isValidName(app)) throw new UsageError(`\`${app}\` is not a valid name for an app: it ${NAME_RULE}.`);
}

async function buildOf(context: Context, file: AppFile, appFile: string, options: BuildOptions): Promise<Built> {
  const [{ buildImage }, { buildRequest }] = await Promise.all([
    import("../build/build.ts"),
    import("../build/request.ts"),
  ]);
  return buildImage(buildRequest(file, appFile, options), context);
}

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
