/** The CLI, as the administrator of a host uses it. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestHost } from "./hosts.ts";

const CLI = join(import.meta.dirname, "../../cli/bin/hibernaut.js");

/** Runs a command on a host, as its administrator does. */
export async function run(host: TestHost, ...args: string[]): Promise<string> {
  const env = {
    ...process.env,
    HIBERNAUT_DATA_DIR: host.dataDir,
    XDG_CONFIG_HOME: join(host.dataDir, "cfg"),
    ...(host.served.apiUrl !== "" && {
      HIBERNAUT_API_URL: host.served.apiUrl,
      HIBERNAUT_API_TOKEN: await host.token(),
    }),
  };
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, ...args], { env });
  return stdout.trim();
}

/** What a command that fails says on standard error; empty when it does not fail. */
export const failure = (work: Promise<string>): Promise<string> =>
  work.then(
    () => "",
    ({ stderr }: { stderr: string }) => stderr,
  );
