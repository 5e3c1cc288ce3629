/** How an app is deployed: `[build]`, `[deploy]`, and the old `[experimental]`. */
import { withValueAt } from "@hibernaut/domain/fields";
import { splitWords } from "@hibernaut/lib/words";
import { BUILDERS, type Builder } from "../build/detect.ts";
import { STRATEGIES } from "../deploy/strategies.ts";
import { DOCKERFILES } from "./folder.ts";
import type { AppFile, Build, Deploy, ReleaseCommand } from "./model.ts";
import { readSize } from "./resources.ts";
import type { Section } from "./section.ts";

/** `[build]`: a finished image, or how to build one. */
export function readBuild(top: Section): Pick<AppFile, "image" | "build"> {
  const section = top.section("build");
  const image = section?.string("image") || undefined;
  const targets = ["build-target", "build_target", "target"].map((key) => section?.string(key));
  const build: Build = {
    builder: section && readBuilder(section),
    dockerfile: section?.string("dockerfile") || undefined,
    target: targets.find((target) => target !== undefined && target !== ""),
    args: (section && readArguments(section)) ?? {},
    ignorefile: section?.string("ignorefile") || undefined,
  };
  if (section !== undefined && image === undefined) requireFiles(section, build);
  section?.ignored(["buildpacks", "builtin", "settings"], BUILDPACKS);
  section?.ignored("secrets", "No effect: pass secrets to a build with --build-secret.");
  section?.ignored(["compression", "compression_level"], "No effect: images of builds are compressed for speed.");
  section?.ignored("compose", "Not supported: a machine runs one image.");
  section?.finish();
  return { image, build };
}

/** What a build reads. */
function requireFiles(section: Section, { builder, dockerfile, ignorefile }: Build): void {
  section.requireFile("dockerfile", dockerfile);
  section.requireFile("ignorefile", ignorefile);
  if (builder === "dockerfile" && dockerfile === undefined && !DOCKERFILES.some((name) => section.finds(name)))
    section.error(
      "builder",
      "The directory of the app file has no Dockerfile. Add one, or name one with `dockerfile`.",
    );
}

const BUILDPACKS = `Not supported: buildpacks are not used. Without a Dockerfile, the directory decides, or builder: ${BUILDERS.join(", ")}.`;

/** Fly's builders are images with buildpacks. */
function readBuilder(section: Section): Builder | undefined {
  const name = section.string("builder");
  const builder = BUILDERS.find((one) => one === name);
  if (name !== undefined && name !== "" && builder === undefined) section.warning("builder", BUILDPACKS);
  return builder;
}

function readArguments(section: Section): Record<string, string> {
  const args = section.section("args");
  if (args === undefined) return {};
  const entries = args.keys.map((name) => {
    const value = args.raw(name);
    if (["string", "number", "boolean", "bigint"].includes(typeof value)) return [name, String(value)];
    return args.error(name, 'Arguments are text. Use quotes, as in "value".');
  });
  return Object.fromEntries(entries.filter((one) => one !== undefined)) as Record<string, string>;
}

const NO_DEPLOY: Deploy = {
  strategy: undefined,
  maxUnavailable: undefined,
  waitTimeout: undefined,
  prewarm: undefined,
  template: undefined,
  releaseCommand: undefined,
};

/** `[deploy]`. */
export function readDeploy(top: Section): Deploy {
  const section = top.section("deploy");
  if (section === undefined) return NO_DEPLOY;
  const strategy = section.choice("strategy", STRATEGIES);
  const maxUnavailable = section.positive("max_unavailable");
  if (maxUnavailable !== undefined && (strategy === "immediate" || strategy === "bluegreen"))
    section.warning("max_unavailable", `No effect: the strategy ${strategy} does not replace machines in batches.`);
  const waitTimeout = section.seconds("wait_timeout", "s");
  if (waitTimeout === 0) section.error("wait_timeout", "Use at least one second.");
  const prewarm = section.booleanOr("prewarm", "prepared");
  const template = section.boolean("template");
  const releaseCommand = readReleaseCommand(section);
  section.ignored("seed_command", "Not supported: no command runs on the first deploy only. Use `release_command`.");
  section.finish();
  return {
    ...{ strategy, maxUnavailable, waitTimeout: waitTimeout && Math.ceil(waitTimeout) },
    ...{ prewarm, template, releaseCommand },
  };
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
export function readInit(top: Section): AppFile["machine"] {
  const section = top.section("experimental");
  const seconds = section?.seconds("kill_timeout", "s");
  const values = {
    "init.entrypoint": section?.strings("entrypoint"),
    "init.cmd": section?.strings("cmd"),
    "init.exec": section?.strings("exec"),
    "stop_config.timeout": seconds && Math.ceil(seconds),
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
  return Object.entries(values).reduce((machine, [path, value]) => withValueAt(machine, path, value), {});
}

/** The warning for `[metrics]` and its former place. */
export const METRICS = "Not supported: metrics of apps are not collected. Let your collector scrape the machine.";
