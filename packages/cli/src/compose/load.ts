/** Reads the compose files of a project from the disk of this computer. */
import { readFileSync, statSync } from "node:fs";
import {
  type Disk,
  type Finding,
  Findings,
  type ProjectPlan,
  planProject,
  projectName,
  readProject,
} from "@hibernaut/compose";
import { CliError } from "../failure.ts";
import type { ProjectOptions } from "./options.ts";

/** A project that can be carried out, and what there is to say about it. */
export interface Loaded {
  plan: ProjectPlan;
  findings: readonly Finding[];
}

const DISK: Disk = {
  text(path) {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  },
  kind(path) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return undefined;
    return found.isFile() ? "file" : found.isDirectory() ? "directory" : "other";
  },
  base64: (path) => readFileSync(path).toString("base64"),
};

/** Reads and plans. Rejects with `invalid_argument`, which lists the errors, if the project cannot be carried out. */
export function loadProject(options: ProjectOptions): Loaded {
  const findings = new Findings();
  const project = readProject(readOptions(options), DISK, findings);
  const plan = project === undefined ? undefined : planProject(project, DISK, findings);
  const errors = findings.list.filter(({ severity }) => severity === "error");
  if (plan === undefined || errors.length > 0)
    throw new CliError(
      "invalid_argument",
      ["The project cannot be carried over as it is:", ...errors.map((one) => `  ${findingText(one)}`)].join("\n"),
    );
  return { plan, findings: findings.list };
}

/** Returns the name of the project, which needs no more of its files than that they can be read. */
export function nameOf(options: ProjectOptions): string {
  if (options.projectName !== undefined) return projectName(options.projectName);
  const findings = new Findings();
  const project = readProject(readOptions(options), DISK, findings);
  if (project !== undefined) return project.name;
  const [first] = findings.list.filter(({ severity }) => severity === "error");
  throw new CliError("invalid_argument", first === undefined ? "There is no project here." : findingText(first));
}

function readOptions({ file, projectName: name, profile, envFile }: ProjectOptions) {
  const named = { files: file, name, profiles: profile, envFiles: envFile };
  return { directory: process.cwd(), ...named, environment: process.env };
}

/** A finding as a line. */
export function findingText({ severity, path, message }: Finding): string {
  return `${severity}: ${path === "" ? "" : `${path}: `}${message}`;
}
