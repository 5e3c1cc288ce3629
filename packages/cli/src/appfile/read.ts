/** Reads an app file. Pure. */
import { MACHINE_FIELDS } from "@hibernaut/domain/fields";
import { ENV_NAME_PATTERN, ENV_VALUE_MAX_LENGTH } from "@hibernaut/domain/limits";
import { parse, TomlError } from "smol-toml";
import { isValidName, NAME_RULE } from "../names.ts";
import { readBackups } from "./backups.ts";
import { readChecks } from "./checks.ts";
import { readFields } from "./fields.ts";
import { readFiles } from "./files.ts";
import { type Finding, Findings } from "./findings.ts";
import { readGroups } from "./groups.ts";
import type { AppFile } from "./model.ts";
import { readNetwork } from "./network.ts";
import { findPositions } from "./positions.ts";
import { METRICS, readBuild, readDeploy, readInit } from "./release.ts";
import { readMounts, readRestarts, readSizes } from "./resources.ts";
import { readSchedules } from "./schedules.ts";
import { Section } from "./section.ts";
import { DEFAULT_PORT, readServices } from "./services.ts";

/** The result of reading an app file. */
export interface Reading {
  /** Undefined when the findings include an error. */
  file: AppFile | undefined;
  /** In the order of the text. */
  findings: Finding[];
}

/**
 * Says why a file that the app file names cannot be read, such as `ENOENT`; undefined if it can. The path is relative to
 * the directory of the app file.
 */
export type Missing = (path: string) => string | undefined;

/**
 * Reads `hibernaut.toml` or `fly.toml`. Never throws: errors in the text are among the findings.
 *
 * @param missing looks for the files that the text names. Without it, nobody looks.
 * @param port where the app listens if the text does not say it
 */
export function readAppFile(text: string, missing: Missing = () => undefined, port = DEFAULT_PORT): Reading {
  const source = text.replace(/^\uFEFF/, "");
  let document: Record<string, unknown>;
  try {
    document = parse(source, { integersAsBigInt: "asNeeded" });
  } catch (error) {
    return { file: undefined, findings: [syntaxFinding(error)] };
  }
  const findings = new Findings(findPositions(source, decodeKey));
  const file = readDocument(new Section(document, [], findings, missing), port);
  const list = findings.list;
  return { file: list.some(({ severity }) => severity === "error") ? undefined : file, findings: list };
}

function readDocument(top: Section, port: number): AppFile {
  const groups = readGroups(top);
  const { services, checks } = readServices(top, groups, port);
  const file: AppFile = {
    app: readName(top),
    primaryRegion: top.string("primary_region"),
    ...readBuild(top),
    env: readEnv(top),
    groups: [...groups.list],
    services,
    checks: [...checks, ...readChecks(top, groups, services)],
    mounts: readMounts(top, groups),
    files: readFiles(top, groups),
    sizes: readSizes(top, groups),
    restarts: readRestarts(top, groups),
    schedules: readSchedules(top, groups),
    backups: readBackups(top, groups),
    machine: { ...readFields(top, MACHINE_FIELDS, readInit(top)), ...readNetwork(top) },
    statusPage: top.boolean("status_page"),
    deploy: readDeploy(top),
  };
  top.ignored(["metrics", "metric"], METRICS);
  top.ignored("statics", "Not supported: the proxy does not serve files. Let the app serve them.");
  top.ignored("console_command", "No effect: pass the command to `hibernaut machine exec <id> -- <command>`.");
  top.ignored(["host_dedication_id", "host_dedication_key"], "No effect: there is one host.");
  top.ignored("machine_checks", "Not supported: machines are not started to test other machines.");
  top.ignored(["machine_config", "container", "containers"], "Not supported: a machine runs one image.");
  top.ignored("regions", "No effect: there is one host.");
  top.finish();
  return file;
}

function readName(top: Section): string | undefined {
  const name = top.string("app");
  if (name === undefined || isValidName(name)) return name;
  return top.error("app", `"${name}" is not a valid name for an app: it ${NAME_RULE}.`);
}

const ENV_NAME = new RegExp(ENV_NAME_PATTERN);

/** `[env]`; numbers and booleans become text, as TOML writes them. */
function readEnv(top: Section): Record<string, string> {
  const variables = top.sections("env").flatMap((section) => section.keys.map((name) => readVariable(section, name)));
  return Object.fromEntries(variables.filter((one) => one !== undefined));
}

function readVariable(section: Section, name: string): [string, string] | undefined {
  const value = section.raw(name);
  if (!ENV_NAME.test(name))
    return section.error(name, `"${name.slice(0, 60)}" is not a valid name for a variable. Use a name without =.`);
  if (typeof value === "string" && (value.length > ENV_VALUE_MAX_LENGTH || value.includes("\0")))
    return section.error(name, `A variable has up to ${ENV_VALUE_MAX_LENGTH} characters, and no zero byte.`);
  if (["string", "number", "boolean", "bigint"].includes(typeof value)) return [name, String(value)];
  return section.error(name, 'Variables are text. Use quotes, as in "value".');
}

/** The name that a quoted key stands for. */
export function decodeKey(quoted: string): string {
  return Object.keys(parse(`${quoted} = 0`))[0] ?? "";
}

/** The parser reports `Invalid TOML document: ...` and a drawing of the position. */
function syntaxFinding(error: unknown): Finding {
  if (!(error instanceof TomlError)) throw error;
  const [what = ""] = error.message.replace(/^Invalid TOML document: /, "").split("\n", 1);
  const message = `Invalid TOML: ${what}.`;
  return { severity: "error", path: "", message, line: error.line, column: error.column };
}
