/** `secrets` and `configs`: contents that a service finds in files. */
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import type { FileConfig } from "@hibernaut/client";
import type { Findings } from "./findings.ts";
import { tellOutside } from "./outside.ts";
import type { Disk, Project } from "./project.ts";
import { isMapping, type Mapping, own, textOf, type Value } from "./values.ts";

/** A secret that the app needs before its machines are made. */
export interface NeededSecret {
  name: string;
  /** Base64, as files made from secrets need it. Undefined for one that has to be set by hand. */
  value: string | undefined;
}

interface Contents {
  files: FileConfig[];
  secrets: NeededSecret[];
}

interface Parts {
  project: Project;
  disk: Disk;
  findings: Findings;
}

/** Reads both. A secret becomes one of the app, encrypted on the host; a config is in the machine's configuration. */
export function readContents(service: Mapping, path: string, parts: Parts): Contents {
  const result: Contents = { files: [], secrets: [] };
  for (const { source, target, mode } of entries(service.secrets, "/run/secrets/")) {
    const at = `${path}.secrets`;
    const content = contentOf(own(parts.project.secrets, source), at, source, parts);
    if (content === undefined) continue;
    const name = secretName(source);
    const twin = result.secrets.find((one) => one.name === name && one.value !== content.value);
    if (twin !== undefined)
      parts.findings.error(at, `\`${source}\` and another secret would both be called ${name}. Rename one of them.`);
    result.secrets.push({ name, value: content.value });
    result.files.push({ guest_path: target, secret_name: name, ...mode });
  }
  for (const { source, target, mode } of entries(service.configs, "/")) {
    const content = contentOf(own(parts.project.configs, source), `${path}.configs`, source, parts);
    if (content === undefined) continue;
    if (content.value === undefined)
      parts.findings.error(
        `${path}.configs`,
        `The config ${source} is external, and there are none here. Give it a \`file\`.`,
      );
    else result.files.push({ guest_path: target, raw_value: content.value, ...mode });
  }
  return result;
}

function entries(value: Value | undefined, folder: string) {
  return (Array.isArray(value) ? value : []).map((entry) => {
    const long = isMapping(entry) ? entry : { source: entry };
    const source = textOf(long.source) ?? "";
    const target = textOf(long.target) ?? source;
    const mode = textOf(long.mode);
    const octal = typeof long.mode === "number" ? long.mode : mode === undefined ? undefined : Number.parseInt(mode, 8);
    return {
      source,
      target: target.startsWith("/") ? target : `${folder}${target}`,
      mode: octal === undefined || Number.isNaN(octal) ? {} : { mode: octal },
    };
  });
}

function contentOf(
  definition: Value | undefined,
  path: string,
  name: string,
  { project, disk, findings }: Parts,
): { value: string | undefined } | undefined {
  if (!isMapping(definition)) return findings.error(path, `\`${name}\` is not defined at the top level of the file.`);
  const { file, environment, content, external } = definition;
  if (external === true) return { value: undefined };
  if (typeof content === "string") return { value: Buffer.from(content).toString("base64") };
  const variable = textOf(environment);
  if (variable !== undefined) {
    const value = project.variable(variable);
    if (value === undefined) return findings.error(path, `\`${name}\` is the variable ${variable}, which is not set.`);
    return { value: Buffer.from(value).toString("base64") };
  }
  const source = textOf(file);
  if (source === undefined) return findings.error(path, `\`${name}\` has neither \`file\` nor \`environment\`.`);
  const from = resolve(project.directory, source);
  tellOutside(from, path, { directory: project.directory, disk, findings });
  try {
    return { value: disk.base64(from) };
  } catch (error) {
    return findings.error(
      path,
      `${source} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`,
    );
  }
}

/** Secrets of an app are variables as well, so their names have that form. */
function secretName(source: string): string {
  const name = source.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
  return `FILE_${name === "" ? createHash("sha256").update(source).digest("hex").slice(0, 8) : name}`;
}
