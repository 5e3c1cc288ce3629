/** `hibernaut launch`: writes an app file for the current directory. */
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { CPUS, MEMORY_MB } from "@hibernaut/domain/limits";
import { APP_FILES, findAppFile } from "../appfile/find.ts";
import { command } from "../command.ts";
import { CliError, UsageError } from "../failure.ts";
import { isValidName, NAME_RULE } from "../names.ts";
import { lines } from "../terminal.ts";

const [OWN_FILE] = APP_FILES;
const PORTS = { minimum: 1, maximum: 65_535 } as const;

/** Reads the directory and writes the file. Never uses the network. */
export const launch = command({
  name: "launch",
  summary: `Write a ${OWN_FILE} for this directory`,
  description:
    "Looks for an image, or for how to build one (a Dockerfile, Node, Python, Go or a static site), and for its port, and writes a commented file that lets the app sleep. If nothing says the port, the first deploy finds it out. In a directory with a compose file and nothing else to launch, shows what that becomes. Asks nothing, and without --now builds nothing and sends nothing anywhere.",
  options: [
    { flags: "--image <reference>", description: "image to run, such as docker-archive:/srv/shop.tar" },
    { flags: "-n, --name <name>", description: "name of the app (default: the package's or the directory's)" },
    {
      flags: "--internal-port <port>",
      description: "the port that the app listens on (default: what the directory says)",
      ...PORTS,
    },
    { flags: "--vm-memory <size>", description: "memory of a machine (default: 256mb)", ...MEMORY_MB, unit: "mb" },
    { flags: "--vm-cpus <count>", description: "CPUs of a machine (default: 1)", ...CPUS },
    { flags: "--plan", description: "show what a compose file becomes, and write nothing" },
    { flags: "--now", description: "deploy at once" },
    { flags: "--no-deploy", description: "don't deploy, which is the default", hidden: true },
    { flags: "-y, --yes", description: "has no effect: nothing is asked", hidden: true },
    { flags: "-f, --force", description: "replace an existing file" },
  ],
  examples: [
    "hibernaut launch",
    "hibernaut launch --name shop --internal-port 3000 --now",
    "hibernaut launch --image docker-archive:/srv/shop.tar --name shop",
  ],
  async run(context, _args, options) {
    if (options.now && options.deploy === false)
      throw new UsageError("--now deploys at once, and --no-deploy does not. Choose one.");
    if (options.name !== undefined && !isValidName(options.name))
      throw new UsageError(`\`${options.name}\` is not a valid name for an app: it ${NAME_RULE}.`);
    const [{ COMPOSE_FILES }, { lookAt }, { planLaunch }, { launchText, nextSteps }] = await Promise.all([
      import("@hibernaut/compose"),
      import("../appfile/folder.ts"),
      import("../appfile/plan.ts"),
      import("../appfile/launch-text.ts"),
    ]);
    const folder = lookAt(process.cwd(), findAppFile(process.cwd()));
    if (folder.appFile !== undefined && !options.force && !options.plan) throw refusal(basename(folder.appFile));
    const composeFile = COMPOSE_FILES.find((name) => folder.entries.includes(name));
    if (options.plan && composeFile === undefined) throw noComposeFile();
    const plan = planLaunch(folder, options);
    if (composeFile !== undefined && (options.plan || plan.kind === "unknown")) {
      const { planProject, upProject } = await import("../compose/commands.ts");
      return options.now ? upProject(context, {}) : planProject({});
    }
    write(join(folder.path, OWN_FILE), launchText(plan));
    const { kind, app, image = null, build, port, portReason } = plan;
    const source =
      image !== null
        ? `image ${image}`
        : build
          ? `built as ${build.builder} because of ${build.because}`
          : "no image yet";
    const port_guessed = portReason === undefined;
    const shown = port_guessed ? "the port to be found out" : `port ${port}`;
    const found = `Wrote ${OWN_FILE}: app ${app}, ${shown}, ${source}.`;
    const document = { file: OWN_FILE, kind, app, image, builder: build?.builder ?? null, port, port_guessed };
    if (options.now) {
      context.say(found);
      const { deployFindingPort } = await import("../deploy/deploy.ts");
      const deployed = await deployFindingPort(context, {});
      return { ...deployed, document: { ...document, deployed: deployed.document } };
    }
    const also =
      composeFile !== undefined &&
      `For the services of ${composeFile} instead: remove ${OWN_FILE}, then hibernaut compose plan`;
    return { document, text: lines(found, nextSteps(plan), also) };
  },
});

function noComposeFile(): CliError {
  return new CliError("not_found", "There is no compose.yaml here, and --plan shows what one becomes.");
}

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
