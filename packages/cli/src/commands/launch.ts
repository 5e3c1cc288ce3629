/** `hibernaut launch`: writes an app file for the current directory. */
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { APP_FILES, findAppFile } from "../appfile/find.ts";
import { command } from "../command.ts";
import { CliError, UsageError } from "../failure.ts";
import { isValidName, NAME_RULE } from "../names.ts";

const [OWN_FILE] = APP_FILES;

/** Reads the directory and writes the file. Never uses the network. */
export const launch = command({
  name: "launch",
  summary: `Write a ${OWN_FILE} for this directory`,
  description:
    "Looks for an image, or for how to build one (a Dockerfile, Node, Python, Go or a static site), guesses the port, and writes a commented file that lets the app sleep. Builds nothing and sends nothing anywhere.",
  options: [
    { flags: "--image <reference>", description: "image to run, such as docker-archive:/srv/shop.tar" },
    { flags: "-n, --name <name>", description: "name of the app (default: the package's or the directory's)" },
    { flags: "-f, --force", description: "replace an existing file" },
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
    const { kind, app, image = null, build, port } = plan;
    const source =
      image !== null
        ? `image ${image}`
        : build
          ? `built as ${build.builder} because of ${build.because}`
          : "no image yet";
    const found = `Wrote ${OWN_FILE}: app ${app}, port ${port}, ${source}.`;
    const document = { file: OWN_FILE, kind, app, image, builder: build?.builder ?? null, port };
    return { document, text: `${found}\n${nextSteps(plan)}` };
  },
});

function refusal(file: string): CliError {
  const message =
    file === OWN_FILE
      ? `${OWN_FILE} already exists. Add --force to replace it.`
      : `${file} already exists and works as it is: see \`hibernaut config validate\`. With --force, a ${OWN_FILE} is written anyway and takes precedence.`;
  return new CliError("already_exists", message);
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new CliError("permission_denied", `${file} cannot be written (${(error as NodeJS.ErrnoException).code}).`);
  }
}
