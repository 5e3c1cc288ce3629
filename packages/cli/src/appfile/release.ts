/** How an app is deployed: `[build]`, `[deploy]`, and the old `[experimental]`. */
import type { AppFile } from "./model.ts";
import type { Section } from "./section.ts";

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

/** The strategy of `[deploy]`. */
export function readDeploy(top: Section): AppFile["deployStrategy"] {
  const section = top.section("deploy");
  if (section === undefined) return undefined;
  const strategy = section.choice("strategy", ["rolling", "immediate", "canary", "bluegreen"]);
  const isKnown = strategy === "rolling" || strategy === "immediate";
  if (strategy !== undefined && !isKnown)
    section.warning("strategy", 'Not supported: machines are replaced one at a time, as with "rolling".');
  section.ignored(
    ["release_command", "release_command_timeout", "release_command_vm", "seed_command"],
    "Not supported: no command runs before a deploy. Run it in a machine with `hibernaut machine exec`, or when the app starts.",
  );
  section.ignored("max_unavailable", "No effect: machines are replaced one at a time.");
  section.ignored("wait_timeout", "No effect: use `hibernaut deploy --wait-timeout <time>`.");
  section.finish();
  return strategy === undefined || isKnown ? strategy : "rolling";
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
