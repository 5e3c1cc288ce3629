/** How an app is deployed: `[build]`, `[deploy]`, and the old `[experimental]`. */
import { STRATEGIES } from "../deploy/strategies.ts";
import type { AppFile, Deploy, ReleaseCommand } from "./model.ts";
import { readSize } from "./resources.ts";
import type { Section } from "./section.ts";
import { splitWords } from "./words.ts";

const BUILD =
  "Not supported: Hibernaut does not build images. Build the image and name it with [build] image, or --image.";

/** The image of `[build]`. */
export function readImage(top: Section): string | undefined {
  const section = top.section("build");
  if (section === undefined) return undefined;
  const image = section.string("image");
  section.ignored(
    [
      "dockerfile",
      "builder",
      "buildpacks",
      "builtin",
      "args",
      "settings",
      "secrets",
      "ignorefile",
      "build-target",
      "build_target",
      "compression",
      "compression_level",
      "compose",
    ],
    BUILD,
  );
  section.finish();
  return image === "" ? undefined : image;
}

/** `[deploy]`. */
export function readDeploy(top: Section): Deploy {
  const section = top.section("deploy");
  if (section === undefined)
    return { strategy: undefined, maxUnavailable: undefined, waitTimeout: undefined, releaseCommand: undefined };
  const strategy = section.choice("strategy", STRATEGIES);
  const maxUnavailable = section.positive("max_unavailable");
  if (maxUnavailable !== undefined && (strategy === "immediate" || strategy === "bluegreen"))
    section.warning("max_unavailable", `No effect: the strategy ${strategy} does not replace machines in batches.`);
  const waitTimeout = section.seconds("wait_timeout", "s");
  const releaseCommand = readReleaseCommand(section);
  section.ignored("seed_command", "Not supported: no command runs on the first deploy only. Use `release_command`.");
  section.finish();
  return { strategy, maxUnavailable, waitTimeout: waitTimeout && Math.ceil(waitTimeout), releaseCommand };
}

/** What the platform accepts. */
const MAX_RELEASE_COMMAND_S = 6 * 3600;

function readReleaseCommand(section: Section): ReleaseCommand | undefined {
  const text = section.string("release_command");
  const seconds = section.seconds("release_command_timeout", "s", MAX_RELEASE_COMMAND_S);
  const vm = section.section("release_command_vm");
  const size = vm && readSize(vm);
  if (seconds === 0) section.error("release_command_timeout", "Use at least one second.");
  if (text === undefined || text.trim() === "") {
    section.ignored(["release_command_timeout", "release_command_vm"], "No effect without `release_command`.");
    return undefined;
  }
  const command = splitWords(text);
  if (command === undefined)
    return section.error("release_command", "This command has an unclosed quote or a trailing backslash.");
  return { command, timeout: seconds === undefined ? undefined : Math.ceil(seconds), size };
}

/** Replacements for the image's command. The other experimental keys of Fly have no counterpart here. */
export function readInit(top: Section): AppFile["init"] & { killTimeout: number | undefined } {
  const section = top.section("experimental");
  const init = {
    entrypoint: section?.strings("entrypoint"),
    cmd: section?.strings("cmd"),
    exec: section?.strings("exec"),
    killTimeout: section?.seconds("kill_timeout", "s"),
  };
  section?.ignored("auto_rollback", "No effect: a failed deploy is not rolled back automatically.");
  section?.ignored(["enable_consul", "enable_etcd"], "Not supported: the platform does not include this service.");
  section?.ignored(["metrics_port", "metrics_path"], METRICS);
  section?.ignored(
    [
      "private_network",
      "allowed_public_ports",
      "lazy_load_images",
      "attached",
      "machine_config",
      "use_zstd",
      "entrypoint_override",
    ],
    "No effect.",
  );
  section?.finish();
  return init;
}

/** The warning for `[metrics]` and its former place. */
export const METRICS = "Not supported: metrics of apps are not collected. Let your collector scrape the machine.";
