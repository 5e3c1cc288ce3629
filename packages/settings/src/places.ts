/** Where things are unless a setting says otherwise. */
import { homedir } from "node:os";
import { join } from "node:path";

/** The guest bundle that the setup built, or that came with the program. */
export const BUNDLED_GUEST = join(packagesFolder(), "guest/.build/bundle");

/** The program that starts QEMU in a jail, which the setup compiled, or which came with the program. */
export const JAIL_LAUNCHER = join(packagesFolder(), "jail/.build/hibernaut-jail");

/** The library that lets QEMU begin with a memory file that it may only read; see packages/jail. Next to the launcher. */
export const READ_ONLY_LIBRARY = join(packagesFolder(), "jail/.build/read-only.so");

/** The program that makes root file systems of images' layers, and what it needs next to it. */
export const IMAGE_UNPACKER = imageUnpacker();

/** The dashboard that the build made, or that came with the program. */
export const BUILT_DASHBOARD = join(packagesFolder(), "dashboard/dist");

function imageUnpacker(): { program: string; files: string[] } {
  const packages = packagesFolder();
  if (!import.meta.filename.endsWith(".ts")) {
    const dist = join(packages, "cli/dist");
    return { program: join(dist, "unpack-image.js"), files: [dist, join(packages, "cli/package.json")] };
  }
  const sources = join(packages, "images/src/flatten");
  return { program: join(sources, "main.ts"), files: [sources, join(packages, "images/package.json")] };
}

/** The directory of the packages. This code runs from the sources or, a directory higher, from the CLI's bundle. */
function packagesFolder(): string {
  const here = import.meta.dirname;
  return here.slice(0, here.lastIndexOf("/packages/") + "/packages".length);
}

/** The directory of `config.json` (the CLI's) and `settings.json`. */
export function configFolder(environment: NodeJS.ProcessEnv): string {
  return join(environment.XDG_CONFIG_HOME || join(environment.HOME ?? homedir(), ".config"), "hibernaut");
}

/** The data directory: the system's place for root, the user's own otherwise. */
export function defaultDataDir(environment: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return "/var/lib/hibernaut";
  return join(environment.XDG_DATA_HOME || join(environment.HOME ?? homedir(), ".local/share"), "hibernaut");
}
