/** Paths in a machine where volumes can be mounted and files written. Pure, and part of the CLI's bundle. */
import { posix } from "node:path";

/** Directories that the machine itself uses. No volume can be mounted there. */
const OWN_FOLDERS = ["/proc", "/sys", "/dev", "/run", "/.hibernaut", "/.fly"];

/** Directories that belong to the kernel, or to the platform. No file can be written there. */
const KEEP_NO_FILES = ["/proc", "/sys", "/dev", "/.hibernaut", "/.fly"];

/**
 * Returns why no file can be written to `path`, as sentences that say what to do; undefined if one can. `others` are the
 * paths of the machine's other files.
 */
export function filePathRefusal(path: string, others: readonly string[]): string | undefined {
  const shown = path.slice(0, 100);
  if (!/^\/[^\0\n]*[^/\0\n]$/.test(path) || posix.normalize(path) !== path)
    return `\`${shown}\` is not a valid path for a file. Use an absolute path such as /etc/app.conf, without ., .. or //.`;
  if (KEEP_NO_FILES.some((folder) => path === folder || path.startsWith(`${folder}/`)))
    return `A file cannot be written to ${shown}: that directory does not keep files. Choose another path, e.g. /etc/app.conf.`;
  const clash = others.find((other) => other === path || path.startsWith(`${other}/`) || other.startsWith(`${path}/`));
  return clash && `Two files cannot be written to ${shown} and ${clash}. Choose a separate path for each.`;
}

/**
 * Returns why no volume can be mounted at `path`, as sentences that say what to do; undefined if one can. `others` are
 * the paths of the machine's other volumes.
 */
export function mountPathRefusal(path: string, others: readonly string[]): string | undefined {
  if (!/^\/[^\0]+$/.test(path) || posix.normalize(`${path}/`) !== `${path}/`)
    return `\`${path.slice(0, 100)}\` is not a valid path for a volume. Use an absolute path such as /data, without ., .. or //.`;
  if (OWN_FOLDERS.some((folder) => path === folder || path.startsWith(`${folder}/`)))
    return `A volume cannot be mounted at ${path}: the machine itself uses that directory. Choose another path, e.g. /data.`;
  if (others.some((other) => other === path || path.startsWith(`${other}/`) || other.startsWith(`${path}/`)))
    return `Two volumes cannot be mounted at ${path}, or one inside the other. Choose a separate path for each.`;
  return undefined;
}
