/** Where things are unless a setting says otherwise. */
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);

/** The guest bundle that the setup built. Its package is looked up, because this code also runs as part of a bundle. */
export const BUNDLED_GUEST = join(dirname(require.resolve("@hibernaut/guest/package.json")), ".build/bundle");

/** The directory of `config.json` (the CLI's) and `settings.json`. */
export function configFolder(environment: NodeJS.ProcessEnv): string {
  return join(environment.XDG_CONFIG_HOME || join(environment.HOME ?? homedir(), ".config"), "hibernaut");
}

/** The data directory: the system's place for root, the user's own otherwise. */
export function defaultDataDir(environment: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return "/var/lib/hibernaut";
  return join(environment.XDG_DATA_HOME || join(environment.HOME ?? homedir(), ".local/share"), "hibernaut");
}
