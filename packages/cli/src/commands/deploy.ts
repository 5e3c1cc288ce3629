/** `hibernaut deploy` and `hibernaut releases`: turn an app file into running machines. */
import type { Release } from "@hibernaut/client";
import { BUILD_OPTIONS } from "../build/options.ts";
import { type Command, command, timeOption } from "../command.ts";
import { WAIT_TIMEOUT_S } from "../defaults.ts";
import { COPY_SECRETS, COPY_VOLUMES, FOR_PREVIEWS, TTL } from "../deploy/preview-options.ts";
import { STRATEGIES } from "../deploy/strategies.ts";
import { UsageError } from "../failure.ts";
import { listText } from "../listing.ts";
import { TABLE } from "../output-format.ts";
import { ago } from "../terminal.ts";
import { UPLOAD } from "../upload/provide.ts";

const DEFAULT_RELEASES = 25;

const deploy = command({
  name: "deploy",
  summary: "Deploy the app that the app file describes",
  description:
    "If neither the app file nor --image names an image, builds one from the directory of the app file. Runs the release_command of the app file, if there is one. Then creates or updates machines one at a time. A running machine is replaced and must pass its checks before the next one; a sleeping machine stays asleep, loses its snapshot and starts with the new version at the next request, or with --prewarm at once, to be checked, and to sleep again with a new snapshot. Running the command again continues an interrupted deploy.",
  options: [
    {
      flags: "-c, --config <file>",
      names: "file",
      description: "the app file (default: ./hibernaut.toml, or ./fly.toml)",
    },
    {
      flags: "--image <reference>",
      description: "image to run instead of the file's or a built one; an older one rolls back",
    },
    ...UPLOAD,
    { flags: "--build-only", description: "build the image, print its reference, and deploy nothing" },
    ...BUILD_OPTIONS,
    { flags: "-e, --env <NAME=value>", description: "environment variable; may repeat", repeats: true },
    {
      flags: "--strategy <strategy>",
      description: "rolling (default), immediate (all at once), canary or bluegreen",
      choices: STRATEGIES,
    },
    {
      flags: "--prewarm",
      description: "start sleeping machines with the new version, check them, and let them sleep again with a snapshot",
    },
    { flags: "--no-prewarm", description: "don't, although the app file says so" },
    {
      flags: "--preview <name>",
      description: "deploy to a preview of the app, such as pr-12, which is an app of its own for a while",
    },
    TTL,
    COPY_SECRETS,
    COPY_VOLUMES,
    { flags: "--skip-release-command", description: "don't run the release_command of the app file" },
    { flags: "--region <region>", description: "region to create machines in" },
    { flags: "--host <host>", description: "in a cluster, the host to create machines on (default: chosen for each)" },
    { flags: "--strict", description: "fail on keys of the app file that have no effect" },
    timeOption("--wait-timeout <time>", "how long a machine may take to pass its checks", WAIT_TIMEOUT_S),
  ],
  ofApp: true,
  appIsNamed: true,
  examples: [
    "hibernaut deploy",
    "hibernaut deploy --build-only",
    "hibernaut deploy --preview pr-12 --ttl 7d",
    "hibernaut deploy --image registry.example.com/shop:v42",
    "hibernaut deploy --image docker-archive:./shop.tar",
    "hibernaut deploy --config fly.toml --image oci:/srv/shop:latest --strategy bluegreen",
  ],
  async run(named, _args, options) {
    if (options.buildOnly && options.image !== undefined)
      throw new UsageError("--build-only builds an image, and --image names one. Leave one of them out.");
    const { preview, ttl, copySecrets, copyVolumes } = options;
    if (preview === undefined && (ttl !== undefined || copySecrets || copyVolumes)) throw new UsageError(FOR_PREVIEWS);
    const { deployFindingPort } = await import("../deploy/deploy.ts");
    return deployFindingPort(named, options);
  },
});

const releases = command({
  name: "releases",
  summary: "List releases, newest first",
  description: "To roll back, run `hibernaut deploy --image <reference>` with an older image.",
  options: [
    { flags: "--limit <count>", description: `how many releases (default: ${DEFAULT_RELEASES})`, minimum: 1 },
    ...TABLE,
  ],
  ofApp: true,
  examples: ["hibernaut releases --app shop", "hibernaut releases --limit 1 -o wide --app shop"],
  async run(context, _args, { limit = DEFAULT_RELEASES, ...options }) {
    const list = await (await context.client()).listReleases(context.app, { limit });
    const listing = {
      head: ["VERSION", "STATUS", "IMAGE", "WHEN", "DESCRIPTION"],
      row: (release: Release) => [
        `v${release.version}`,
        release.status,
        release.image.ref,
        ago(release.created_at),
        release.description,
      ],
      wide: { head: ["DIGEST"], row: (release: Release) => [release.image.digest] },
      spare: ["WHEN"],
      id: (release: Release) => `v${release.version}`,
      empty: `App ${context.app} has no releases yet.`,
    };
    return { document: list, text: listText(list, listing, options) };
  },
});

/** At the top level, because people type them most. */
export const deployCommands: readonly Command[] = [deploy, releases];
