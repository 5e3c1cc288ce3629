/** How the program of a service runs: its variables, command and user, its size, and how it ends. */
import { resolve } from "node:path";
import type { MachineConfig } from "@hibernaut/client";
import { CPUS, MEMORY_MB } from "@hibernaut/domain/limits";
import { splitWords } from "@hibernaut/lib/words";
import { readEnvFile } from "./env-file.ts";
import type { Findings } from "./findings.ts";
import { InterpolationError } from "./interpolate.ts";
import { tellOutside } from "./outside.ts";
import type { Disk, Project } from "./project.ts";
import { bytesOf, isMapping, type Mapping, pairsOf, secondsOf, textOf, textsOf, type Value } from "./values.ts";

const MIB = 1024 ** 2;
const MOST_STOP_S = 300;

interface Parts {
  project: Project;
  disk: Disk;
  findings: Findings;
}

/** `env_file`, and `environment` over it. */
export function environmentOf(
  definition: Mapping,
  path: string,
  { project, disk, findings }: Parts,
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const entry of [definition.env_file ?? []].flat()) {
    const file = textOf(isMapping(entry) ? entry.path : entry) ?? "";
    const isRequired = !(isMapping(entry) && entry.required === false);
    try {
      const from = resolve(project.directory, file);
      tellOutside(from, `${path}.env_file`, { directory: project.directory, disk, findings });
      const text = disk.text(from);
      if (text !== undefined)
        Object.assign(
          result,
          readEnvFile(text, (name) => project.variable(name)),
        );
      else if (isRequired) findings.error(`${path}.env_file`, `${file} cannot be found.`);
    } catch (error) {
      const why =
        error instanceof InterpolationError
          ? error.message
          : `It cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`;
      findings.error(`${path}.env_file`, `${file}: ${why}`);
    }
  }
  for (const [name, value] of pairsOf(definition.environment)) {
    const given = value ?? project.variable(name);
    if (given !== undefined) result[name] = given;
  }
  return result;
}

/** Its command, its user, and where it starts. */
export function initOf(definition: Mapping, path: string, findings: Findings) {
  const words = (key: "entrypoint" | "command") => {
    const value = definition[key];
    if (value === undefined || value === null) return undefined;
    if (typeof value !== "string") return textsOf(value);
    return (
      splitWords(value) ??
      findings.error(`${path}.${key}`, "The command has an unclosed quote or a trailing backslash.")
    );
  };
  const [entrypoint, cmd] = [words("entrypoint"), words("command")];
  const [user, directory] = [textOf(definition.user), textOf(definition.working_dir)];
  return {
    // Another entry point takes the image's command away.
    ...(entrypoint !== undefined && { entrypoint, cmd: cmd ?? [] }),
    ...(entrypoint === undefined && cmd !== undefined && { cmd }),
    ...(user !== undefined && { user }),
    ...(directory !== undefined && { working_dir: directory }),
  };
}

/** Its memory and CPUs. */
export function guestOf(definition: Mapping, path: string, memoryMb: number, findings: Findings) {
  const limits = inside(definition.deploy, "resources", "limits");
  const [memory, cpus] = [inside(limits, "memory") ?? definition.mem_limit, inside(limits, "cpus") ?? definition.cpus];
  const bytes = memory === undefined ? undefined : bytesOf(memory);
  if (memory !== undefined && bytes === undefined)
    findings.error(path, `\`${String(memory)}\` is not a size, as 512m is.`);
  const deploy = isMapping(definition.deploy) ? definition.deploy : {};
  if (Number(deploy.replicas ?? 1) > 1 || definition.scale !== undefined)
    findings.warn(
      `${path}.deploy.replicas`,
      "The project has one machine of each service. `hibernaut scale count` adds more.",
    );
  for (const key of ["placement", "update_config", "rollback_config", "endpoint_mode", "mode"])
    if (deploy[key] !== undefined) findings.note(`${path}.deploy.${key}`, "No effect: it is for a swarm.");
  const wanted = {
    memory: bytes === undefined ? memoryMb : Math.ceil(bytes / MIB),
    cpus: Math.ceil(Number(cpus ?? 0)),
  };
  if (wanted.memory < MEMORY_MB.minimum)
    findings.note(path, `A machine has at least ${MEMORY_MB.minimum} MB of memory: its kernel needs some of it.`);
  if (wanted.memory > MEMORY_MB.maximum)
    findings.error(path, `A machine has at most ${MEMORY_MB.maximum} MB of memory.`);
  if (wanted.cpus > CPUS.maximum) findings.error(path, `A machine has at most ${CPUS.maximum} CPUs.`);
  return {
    memory_mb: Math.max(MEMORY_MB.minimum, wanted.memory),
    ...(wanted.cpus > 0 && { cpus: wanted.cpus }),
  };
}

/** What follows its end. */
export function restartOf(
  definition: Mapping,
  path: string,
  findings: Findings,
): NonNullable<MachineConfig["restart"]> {
  const condition = textOf(inside(definition.deploy, "restart_policy", "condition"));
  const attempts = Number(inside(definition.deploy, "restart_policy", "max_attempts"));
  const [word = "no", most] = (textOf(definition.restart) ?? condition ?? "no").split(":");
  const limit = Number(most ?? attempts);
  switch (word) {
    case "no":
    case "none":
    case "false":
      return { policy: "no" };
    case "always":
    case "unless-stopped":
    case "any":
      return { policy: "always" };
    case "on-failure":
      return {
        policy: "on-failure",
        ...(Number.isInteger(limit) && limit > 0 && { max_retries: Math.min(limit, 1000) }),
      };
    default:
      findings.error(`${path}.restart`, `There is no restart policy ${word}.`);
      return { policy: "no" };
  }
}

/** How it is asked to end. */
export function stopOf(definition: Mapping, path: string, findings: Findings) {
  const [signal, grace] = [textOf(definition.stop_signal), definition.stop_grace_period];
  const seconds = grace === undefined ? undefined : secondsOf(grace);
  if (grace !== undefined && seconds === undefined)
    findings.error(`${path}.stop_grace_period`, "Write a duration, as in 30s.");
  if (seconds !== undefined && seconds > MOST_STOP_S)
    findings.warn(`${path}.stop_grace_period`, `A machine has at most ${MOST_STOP_S} seconds to stop.`);
  return {
    ...(signal !== undefined && { signal: signal.startsWith("SIG") ? signal : `SIG${signal}` }),
    ...(seconds !== undefined && { timeout: Math.min(MOST_STOP_S, Math.max(1, Math.round(seconds))) }),
  };
}

function inside(value: Value | undefined, ...names: string[]): Value | undefined {
  return names.reduce<Value | undefined>((part, name) => (isMapping(part) ? part[name] : undefined), value);
}
