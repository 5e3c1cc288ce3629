/** Options of the commands that build. Loaded with every command, so it loads nothing itself. */
import type { Option, OptionValues } from "../command.ts";

/** How long a build may take, in seconds: installing a large app's dependencies takes minutes. */
export const BUILD_TIMEOUT_S = 20 * 60;

/** The options. */
export const BUILD_OPTIONS = [
  { flags: "--dockerfile <file>", names: "file", description: "Dockerfile to build, relative to the app file" },
  { flags: "--build-arg <NAME=value>", description: "variable of the Dockerfile; may repeat", repeats: true },
  {
    flags: "--build-secret <secret>",
    description: "secret of the Dockerfile, as in id=npm,src=token.txt or id=npm,env=TOKEN; may repeat",
    repeats: true,
  },
  { flags: "--build-target <stage>", description: "stage of the Dockerfile to build" },
  { flags: "--no-build-cache", description: "build everything again" },
  {
    flags: "--build-timeout <time>",
    description: `how long the build may take: seconds, or a unit as in 30m (default: ${BUILD_TIMEOUT_S / 60}m)`,
    minimum: 1,
    unit: "seconds",
  },
] as const satisfies readonly Option[];

/** Their values. */
export type BuildOptions = OptionValues<typeof BUILD_OPTIONS>;
