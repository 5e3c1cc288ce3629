/** Reads the compose files of a project from the disk of this computer. */
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { relative } from "node:path";
import {
  appName,
  asPreview,
  type Disk,
  type Finding,
  Findings,
  type ProjectPlan,
  planProject,
  readProject,
} from "@hibernaut/compose";
import { previewAppName } from "@hibernaut/domain/preview";
import { tokenFiles } from "../config.ts";
import { CliError } from "../failure.ts";
import type { ProjectOptions } from "./options.ts";

/** A project that can be carried out, and what there is to say about it. */
export interface Loaded {
  plan: ProjectPlan;
  findings: readonly Finding[];
}

/** No file of a project is larger, in bytes: what is read is held in memory, and files for a machine may have a quarter of it. */
const MOST_BYTES = 1024 * 1024;

const DISK: Disk = {
  text: (path) => (typeOf(path) === undefined ? undefined : read(path).toString("utf8")),
  kind: typeOf,
  real,
  base64: (path) => read(path).toString("base64"),
};

function typeOf(path: string): "file" | "directory" | "other" | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  return found.isFile() ? "file" : found.isDirectory() ? "directory" : "other";
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // reading it says why
  }
}

/** Where the kernel tells of programs, which is not on a disk. */
const PROCESSES = "/proc";

function isWithin(file: string, directory: string): boolean {
  const way = relative(directory, file);
  return way !== ".." && !way.startsWith("../");
}

/** Why no image is built from a directory: a Dockerfile takes from it whatever it names. Undefined if one may be. */
function buildRefusal(directory: string): string | undefined {
  const within = real(directory);
  const file = tokenFiles(process.env).find((each) => existsSync(each) && isWithin(real(each), within));
  if (file !== undefined) return `${file}, which has tokens of your platforms, is in ${directory}.`;
  const isOfPrograms = isWithin(within, PROCESSES) || isWithin(PROCESSES, within);
  return isOfPrograms ? `What the kernel tells of programs is in ${directory}.` : undefined;
}

/** A device or a pipe could have no end. */
function read(path: string): Buffer {
  const found = statSync(path);
  // A project that someone else wrote is meant to be run, and not to rule the platform.
  if (tokenFiles(process.env).some((file) => real(path) === real(file)))
    throw Object.assign(new Error(`${path} has tokens.`), { code: "it has the tokens of your platforms" });
  // The environment of this very command is there, with its token.
  if (isWithin(real(path), PROCESSES))
    throw Object.assign(new Error(`${path} is about programs.`), { code: "it is about programs that run" });
  if (!found.isFile()) throw Object.assign(new Error(`${path} is not a file.`), { code: "not a file" });
  if (found.size > MOST_BYTES) throw Object.assign(new Error(`${path} is too large.`), { code: "larger than 1 MB" });
  return readFileSync(path);
}

/** Reads and plans. Rejects with `invalid_argument`, which lists the errors, if the project cannot be carried out. */
export function loadProject(options: ProjectOptions): Loaded {
  const findings = new Findings();
  const project = readProject(readOptions(options), DISK, findings);
  const own = project && planProject(project, DISK, findings);
  for (const { service, build } of own?.apps ?? []) {
    const refusal = build && buildRefusal(build.directory);
    if (refusal !== undefined)
      findings.error(`services.${service}.build`, `${refusal} Name a directory that has only what the image needs.`);
  }
  const { preview } = options;
  const plan = own === undefined || preview === undefined ? own : asPreview(own, preview, findings);
  const errors = findings.list.filter(({ severity }) => severity === "error");
  if (plan === undefined || errors.length > 0)
    throw new CliError(
      "invalid_argument",
      ["The project cannot be carried over as it is:", ...errors.map((one) => `  ${findingText(one)}`)].join("\n"),
    );
  return { plan, findings: findings.list };
}

/**
 * Returns the name of the project or its preview, for what is about its apps, and the apps that its files describe. Rejects
 * with `invalid_argument` when the files have an error or their name a variable that is not set: it would be the name of
 * another project.
 */
export function namesOf(options: ProjectOptions): { name: string; described: ReadonlySet<string> } {
  const findings = new Findings();
  const project = readProject(readOptions(options), DISK, findings);
  const trouble = findings.list.find(
    ({ severity, path }) => severity === "error" || (severity === "warning" && path === "name"),
  );
  if (project === undefined || trouble !== undefined)
    throw new CliError("invalid_argument", trouble === undefined ? "There is no project here." : findingText(trouble));
  const { name: own, services, inactive } = project;
  const name = options.preview === undefined ? own : previewAppName(options.preview, own);
  return { name, described: new Set([...services.keys(), ...inactive].map((service) => appName(name, service))) };
}

function readOptions({ file, projectName: name, profile, envFile }: ProjectOptions) {
  const named = { files: file, name, profiles: profile, envFiles: envFile };
  // No service gets the token of this very command because its file names the variable: it would rule the platform.
  const { HIBERNAUT_API_TOKEN: _token, ...environment } = process.env;
  return { directory: process.cwd(), ...named, environment };
}

/** A finding as a line. */
export function findingText({ severity, path, message }: Finding): string {
  return inLine(`${severity}: ${path === "" ? "" : `${path}: `}${message}`);
}

/** Words of a compose file in one line, so that nothing in them looks like a line of ours. */
export function inLine(text: string): string {
  return text.replaceAll("\n", "\\n");
}
