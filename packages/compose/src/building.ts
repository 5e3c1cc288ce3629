/** `build` of a service. */
import { resolve } from "node:path";
import type { Findings } from "./findings.ts";
import { readExpose } from "./ports.ts";
import type { Disk, Project } from "./project.ts";
import { isMapping, pairsOf, textOf, type Value } from "./values.ts";

/** How an image is built. */
export interface BuildPlan {
  /** Absolute. */
  directory: string;
  /** Relative to the directory. */
  dockerfile: string | undefined;
  target: string | undefined;
  args: Record<string, string>;
}

interface Parts {
  project: Project;
  findings: Findings;
}

/** Reads it. Undefined if the service is not built. */
export function buildOf(value: Value | undefined, path: string, { project, findings }: Parts): BuildPlan | undefined {
  if (value === undefined || value === null) return undefined;
  const build = isMapping(value) ? value : { context: value };
  const context = textOf(build.context) ?? ".";
  if (/^(?:https?|git|ssh):\/\/|^git@|\.git(?:#|$)/.test(context))
    return findings.error(`${path}.build`, `${context} is not on this computer. Clone it, and name the directory.`);
  for (const key of Object.keys(build))
    if (!["context", "dockerfile", "target", "args"].includes(key))
      findings.warn(`${path}.build.${key}`, "Left out: builds here know context, dockerfile, target and args.");
  return {
    directory: resolve(project.directory, context),
    dockerfile: textOf(build.dockerfile),
    target: textOf(build.target),
    args: Object.fromEntries(pairsOf(build.args).map(([name, given]) => [name, given ?? project.variable(name) ?? ""])),
  };
}

/** The ports that the Dockerfile exposes. */
export function exposedBy(build: BuildPlan | undefined, disk: Disk): number[] {
  if (build === undefined) return [];
  let text: string | undefined;
  try {
    text = disk.text(resolve(build.directory, build.dockerfile ?? "Dockerfile"));
  } catch {
    return []; // the build says why
  }
  // Within the line: where spaces may be newlines, each empty line would be followed to the end of the file.
  return [...(text ?? "").matchAll(/^[ \t]*EXPOSE[ \t]+(.+)$/gim)].flatMap(([, ports = ""]) =>
    readExpose(ports.trim().split(/\s+/)),
  );
}
