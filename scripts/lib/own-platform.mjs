/** A platform on a data directory of its own, for the benches, the tape and the screenshots. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./node.mjs";
import { startPlatform } from "./platform.mjs";

const HOST = "127.0.0.1";

/**
 * Settings of a platform that shares nothing with others on this host.
 *
 * @param {string} dataDir
 */
export function ownSettings(dataDir) {
  return {
    HIBERNAUT_DATA_DIR: dataDir,
    XDG_CONFIG_HOME: join(dataDir, "cfg"),
    HIBERNAUT_API_LISTEN: `${HOST}:0`,
    HIBERNAUT_PROXY_LISTEN: `${HOST}:0`,
  };
}

/** The token of an administrator. @param {string} dataDir */
export function tokenIn(dataDir) {
  return String(JSON.parse(readFileSync(join(dataDir, "config.json"), "utf8")).api_token);
}

/** Removes what a platform that has ended leaves on the host, except for its data. @param {NodeJS.ProcessEnv} env */
export function uninstall(env) {
  const command = [join(ROOT, "packages/cli/bin/hibernaut.js"), "uninstall", "--keep-link"];
  spawnSync(process.execPath, command, { stdio: ["ignore", "ignore", "inherit"], env });
}

/**
 * Starts a platform on a temporary data directory. `close` ends it and its machines, and leaves nothing behind.
 *
 * @param {Record<string, string>} [settings] Besides {@link ownSettings}.
 * @param {(line: string) => void} [say] As for `startPlatform`.
 */
export async function startOwnPlatform(settings = {}, say) {
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), "hibernaut-own-")));
  const env = { ...process.env, ...ownSettings(dataDir), ...settings };
  /** @type {import("./platform.mjs").Platform | undefined} */
  let platform;
  const close = async () => {
    await platform?.stop();
    uninstall(env);
    rmSync(dataDir, { recursive: true, force: true });
  };
  try {
    platform = await startPlatform({ env, ...(say && { say }) });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...platform,
    dataDir,
    env,
    token: tokenIn(dataDir),
    port: Number(new URL(platform.proxyUrl ?? "").port),
    close,
  };
}
