/** Options of the commands that build. Loaded with every command, so it loads little itself. */
import { type Option, type OptionValues, timeOption } from "../command.ts";

/** How long a build may take, in seconds: installing a large app's dependencies takes minutes. */
export const BUILD_TIMEOUT_S = 20 * 60;

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
  timeOption("--build-timeout <time>", "how long the build may take", `${BUILD_TIMEOUT_S / 60}m`, "30m"),
] as const satisfies readonly Option[];

export type BuildOptions = OptionValues<typeof BUILD_OPTIONS>;
