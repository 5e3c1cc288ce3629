/** `hibernaut launch`: an app file for the folder one stands in. */
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { APP_FILES, findAppFile } from "../appfile/find.ts";
import { command } from "../command.ts";
import { CliError, UsageError } from "../failure.ts";
import { isValidName, NAME_RULE } from "../names.ts";

const [OWN_FILE] = APP_FILES;

/** Looks and writes; it never asks the network. */
export const launch = command<{ image?: string; name?: string; force?: boolean }>({
  name: "launch",
  summary: `Write a ${OWN_FILE} for this folder`,
  description:
    "Looks for an image, a Dockerfile, a package.json or the root of a system, guesses the port, and writes a commented file that lets the app sleep. Nothing is built and nothing is sent anywhere.",
  options: [
    { flags: "--image <reference>", description: "image to run, e.g. docker-archive:/srv/shop.tar" },
    { flags: "-n, --name <name>", description: "name of the app; else the package's, else the folder's" },
    { flags: "-f, --force", description: "replace a file that is there" },
  ],
  examples: ["hibernaut launch", "hibernaut launch --image docker-archive:/srv/shop.tar --name shop"],
  async run(_context, _args, options) {
    if (options.name !== undefined && !isValidName(options.name))
      throw new UsageError(`\`${options.name}\` is not a valid name for an app: it ${NAME_RULE}.`);
    const [{ lookAt }, { planLaunch }, { launchText, nextSteps }] = await Promise.all([
      import("../appfile/folder.ts"),
      import("../appfile/plan.ts"),
      import("../appfile/launch-text.ts"),
    ]);
    const folder = lookAt(process.cwd(), findAppFile(process.cwd()));
    if (folder.appFile !== undefined && !options.force) throw refusal(basename(folder.appFile));
    const plan = planLaunch(folder, options);
    write(join(folder.path, OWN_FILE), launchText(plan));
    const { kind, app, image = null, port } = plan;
    const found = `${OWN_FILE} is written: app ${app}, port ${port}, ${image === null ? "no image yet" : `image ${image}`}.`;
    return { document: { file: OWN_FILE, kind, app, image, port }, text: `${found}\n${nextSteps(plan)}` };
  },
});

function refusal(file: string): CliError {
  const message =
    file === OWN_FILE
      ? `${OWN_FILE} is there already. Add --force to replace it.`
      : `${file} is there, and is read as it is: see \`hibernaut config validate\`. With --force a ${OWN_FILE} is written all the same, and goes before it.`;
  return new CliError("already_exists", message);
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new CliError("permission_denied", `${file} cannot be written (${(error as NodeJS.ErrnoException).code}).`);
  }
}
