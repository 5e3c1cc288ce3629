/** What the app file and the options of a command ask to build. */
import { dirname, resolve } from "node:path";
import type { AppFile, Build } from "../appfile/model.ts";
import { byReach, DEFAULT_PORT } from "../appfile/services.ts";
import { UsageError } from "../failure.ts";
import { pairs } from "../machine-config.ts";
import { readSecret } from "./dockerfile-plan.ts";
import { BUILD_TIMEOUT_S, type BuildOptions } from "./options.ts";

export interface BuildRequest extends Build {
  /** Absolute. */
  directory: string;
  /** The port that the app should listen on; the image sets PORT. */
  port: number;
  /** Whether the app file says what every machine runs, so that the image need not. */
  commandNamed: boolean;
  /** For a Dockerfile: `id=<name>,src=<file>` or `id=<name>,env=<variable>`. */
  secrets: string[];
  /** Whether to make everything again. */
  fresh: boolean;
  /** Seconds. */
  timeout: number;
}

/** What the file and the options ask for. The directory is that of the app file. Pure. */
export function buildRequest(file: AppFile, appFile: string, options: BuildOptions): BuildRequest {
  const [service] = file.services.toSorted(byReach);
  const { dockerfile, target, args, ...others } = file.build;
  const { init = {} } = file.machine;
  const secrets = options.buildSecret ?? [];
  for (const secret of secrets)
    if (readSecret(secret) === undefined)
      throw new UsageError(
        "--build-secret takes the secret's name and where it is: id=npm,src=token.txt, or id=npm,env=TOKEN.",
      );
  return {
    ...others,
    directory: resolve(dirname(appFile)),
    dockerfile: options.dockerfile ?? dockerfile,
    target: options.buildTarget ?? target,
    args: { ...args, ...pairs("--build-arg", options.buildArg) },
    secrets,
    commandNamed: (init.cmd ?? init.exec) !== undefined || file.groups.every(({ command }) => command !== undefined),
    port: service?.config.internal_port ?? DEFAULT_PORT,
    fresh: options.buildCache === false,
    timeout: options.buildTimeout ?? BUILD_TIMEOUT_S,
  };
}
