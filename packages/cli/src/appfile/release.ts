/** How an app gets onto the platform: `[build]`, `[deploy]`, and the old `[experimental]`. */
import type { AppFile } from "./model.ts";
import type { Section } from "./section.ts";

const BUILD = "Nothing is built here. Build the image yourself and name it: [build] image, or --image.";

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
    section.warning("strategy", 'Not supported: machines are replaced one by one, as with "rolling".');
  section.ignored(
    ["release_command", "release_command_timeout", "release_command_vm", "seed_command"],
    "Not supported: nothing runs before a deploy. Run it in a machine, with `hibernaut machine exec`, or when the app starts.",
  );
  section.ignored("max_unavailable", "It has no effect: machines are replaced one by one.");
  section.ignored("wait_timeout", "It has no effect: say it with `hibernaut deploy --wait-timeout <seconds>`.");
  section.finish();
  return strategy === undefined || isKnown ? strategy : "rolling";
}

/** What replaces the image's command. Fly's other experiments have no counterpart here. */
export function readInit(top: Section): AppFile["init"] & { killTimeout: number | undefined } {
  const section = top.section("experimental");
  const init = {
    entrypoint: section?.strings("entrypoint"),
    cmd: section?.strings("cmd"),
    exec: section?.strings("exec"),
    killTimeout: section?.seconds("kill_timeout", "s"),
  };
  section?.ignored("auto_rollback", "It has no effect: a deploy that fails is not turned back by itself.");
  section?.ignored(["enable_consul", "enable_etcd"], "Not supported: no such service comes with the platform.");
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
    "It has no effect here.",
  );
  section?.finish();
  return init;
}

/** The same for `[metrics]` and its older place. */
export const METRICS = "Not supported: the app's own metrics are not collected. Let your collector ask the machine.";
