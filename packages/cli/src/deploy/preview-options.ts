/** What is said about a preview on the command line. Apart, so that `--help` does not load what deploys. */
import { PREVIEW_TTL_S } from "@hibernaut/domain/limits";

/** How long the preview is kept. */
export const TTL = {
  flags: "--ttl <time>",
  description: "how long the preview is kept from now on, such as 72h or 7d (default: as the platform says, 72h)",
  ...PREVIEW_TTL_S,
  unit: "life",
} as const;

export const COPY_SECRETS = {
  flags: "--copy-secrets",
  description: "give the preview the app's secrets, which its code can then read",
} as const;

export const COPY_VOLUMES = {
  flags: "--copy-volumes",
  description: "give a new preview copies of the app's volumes, in place of empty ones",
} as const;

/** Why these options are refused elsewhere. */
export const FOR_PREVIEWS = "--ttl, --copy-secrets and --copy-volumes are for previews. Add --preview <name>.";
