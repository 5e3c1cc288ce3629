/** What becomes of a service's volumes and mounted files. */
import { isAbsolute, resolve } from "node:path";
import type { FileConfig, MountConfig } from "@hibernaut/client";
import type { Findings } from "./findings.ts";
import { tellOutside } from "./outside.ts";
import type { Disk, Project } from "./project.ts";
import { bytesOf, isMapping, type Mapping, own, textOf, type Value } from "./values.ts";

/** What is mounted where. */
interface Mount {
  type: string;
  source: string;
  target: string;
}

interface Mounted {
  mounts: MountConfig[];
  files: FileConfig[];
}

const SOCKETS = /\/(?:docker|podman|containerd)[^/]*\.sock$/;
const MOST_MOUNTS = 8;
const GIB = 1024 ** 3;

/**
 * Reads `volumes`: named and anonymous ones are volumes of the machine, files of the host are files in it, and directories of the
 * host are refused.
 *
 * @param users which services use each named volume
 */
export function readVolumes(
  service: Mapping,
  path: string,
  { project, disk, users, findings }: { project: Project; disk: Disk; users: Map<string, string>; findings: Findings },
): Mounted {
  const mounted: Mounted = { mounts: [], files: [] };
  for (const entry of Array.isArray(service.volumes) ? service.volumes : []) {
    const mount = readMount(entry);
    if (mount === undefined) {
      findings.error(path, `\`${JSON.stringify(entry).slice(0, 80)}\` is not a volume.`);
      continue;
    }
    if (mount.type === "tmpfs" || mount.type === "npipe" || mount.type === "cluster" || mount.type === "image")
      findings.warn(path, `${mount.target} is left out: there are no mounts of the type ${mount.type}.`);
    else if (mount.type === "bind") bind(mount, path, { project, disk, findings, mounted });
    else mounted.mounts.push(...named(mount, path, { project, users, findings }));
  }
  if (mounted.mounts.length > MOST_MOUNTS)
    findings.error(
      path,
      `A machine has at most ${MOST_MOUNTS} volumes, and this service has ${mounted.mounts.length}.`,
    );
  return mounted;
}

function readMount(entry: Value): Mount | undefined {
  if (isMapping(entry)) {
    const target = textOf(entry.target);
    return target === undefined
      ? undefined
      : { type: textOf(entry.type) ?? "volume", source: textOf(entry.source) ?? "", target };
  }
  const [first = "", second] = (textOf(entry) ?? "").split(":");
  if (second === undefined) return first.startsWith("/") ? { type: "volume", source: "", target: first } : undefined;
  const isPath = /^[./~]/.test(first);
  return { type: isPath ? "bind" : "volume", source: first, target: second };
}

function bind(
  { source, target }: Mount,
  path: string,
  { project, disk, findings, mounted }: { project: Project; disk: Disk; findings: Findings; mounted: Mounted },
): void {
  const from = isAbsolute(source)
    ? source
    : resolve(project.directory, source.replace(/^~/, project.variable("HOME") ?? "~"));
  if (SOCKETS.test(from))
    return findings.error(
      path,
      `${source} is the socket of a container engine, and there is none in a machine: this service cannot do its work here. Leave it out, as with a profile.`,
    );
  const kind = disk.kind(from);
  if (kind === "file") {
    tellOutside(from, path, { directory: project.directory, disk, findings });
    try {
      mounted.files.push({ guest_path: target, raw_value: disk.base64(from) });
      findings.note(
        path,
        `${target} is written into the machine at each cold start, from ${source}: a later change there needs \`hibernaut compose up\`. Those who can read the machine's configuration can read it: for a key, use \`secrets\`.`,
      );
    } catch (error) {
      findings.error(path, `${from} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)}).`);
    }
    return;
  }
  if (kind === undefined && !source.endsWith("/"))
    findings.error(
      path,
      `${source} does not exist. A file has to be there, to be written into the machine; for data, use a named volume.`,
    );
  else
    findings.error(
      path,
      `${source} is a directory of this computer, and a machine cannot see it. Use a named volume, as in \`${volumeName(target)}:${target}\`, and copy what is needed: \`hibernaut machine cp\`. Or put it into the image.`,
    );
}

function named(
  { source, target }: Mount,
  path: string,
  { project, users, findings }: { project: Project; users: Map<string, string>; findings: Findings },
): MountConfig[] {
  const name = volumeName(source === "" ? target : source);
  const user = users.get(name);
  if (source !== "" && user !== undefined && user !== path) {
    findings.error(
      path,
      `The volume ${source} is used by ${user.split(".")[1]}, and a volume belongs to one machine at a time. Give this service a volume of its own, or let it ask the other over the network.`,
    );
    return [];
  }
  if (source !== "") users.set(name, path);
  const definition = own(project.volumes, source);
  if (isMapping(definition) && definition.external === true)
    findings.warn(
      path,
      `The volume ${source} is external: here, it begins empty. Copy what it holds with \`hibernaut machine cp\`.`,
    );
  return [{ volume: name, path: target, ...sizeOf(definition, path, findings) }];
}

/** `x-hibernaut: {size: 20gb}` of a volume. */
function sizeOf(definition: Value | undefined, path: string, findings: Findings): { size_gb?: number } {
  const more = isMapping(definition) && isMapping(definition["x-hibernaut"]) ? definition["x-hibernaut"] : {};
  if (more.size === undefined) return {};
  const bytes = bytesOf(more.size);
  if (bytes === undefined) return findings.error(path, `\`${String(more.size)}\` is not a size, as 20gb is.`) ?? {};
  return { size_gb: Math.max(1, Math.ceil(bytes / GIB)) };
}

/** The closest name that a volume can have. */
function volumeName(text: string): string {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "")
    .slice(-30)
    .replace(/^_+/, "");
  return name === "" ? "data" : name;
}
