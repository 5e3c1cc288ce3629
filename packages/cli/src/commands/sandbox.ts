/** `hibernaut sandbox`: its own words, and what programs that use E2B's clients need. */
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { MEMORY_MB } from "@hibernaut/domain/limits";
import { explained } from "../build/build.ts";
import { buildFolder, requireNoColon } from "../build/place.ts";
import { command, type Noun, type OptionValues } from "../command.ts";
import { isAppNamed } from "../config.ts";
import type { Context } from "../context.ts";
import { type Display, jsonLines, oneLine } from "../display.ts";
import { interruptible } from "../interrupting.ts";
import { given } from "../option-values.ts";
import { exportLines, sandboxEnvironment } from "../sandbox-environment.ts";
import { lines, megabytes } from "../terminal.ts";
import { provide, UPLOAD } from "../upload/provide.ts";
import { shown } from "../visible.ts";
import { lifeCommands } from "./sandbox-life.ts";

/** A program and its packages need more than a machine gets by default. In MB. */
const DEFAULT_MEMORY = 512;

const env = command({
  name: "env",
  summary: "Print the variables with which E2B's clients find this platform",
  description:
    "Reads the settings of this host, as `serve` does: run it on the platform's host, with the environment that `serve` has.",
  options: [{ flags: "-a, --app <name>", description: "the app whose machines the sandboxes are", names: "app" }],
  examples: ["hibernaut sandbox env --app agents", 'eval "$(hibernaut sandbox env)"'],
  async run(context) {
    const { readSettings } = await import("@hibernaut/settings");
    const environment = sandboxEnvironment(readSettings(process.env));
    const app = isAppNamed(context.namedApp, process.env, process.cwd()) ? context.app : "<app>";
    const hint = `# Set E2B_API_KEY, too, to a key: hibernaut tokens create <name> --e2b --app ${app}`;
    return { document: environment, text: lines(...exportLines(environment), hint) };
  },
});

const template = command({
  name: "template",
  summary: "Make a template that sandboxes are born from",
  description:
    "E2B's clients ask for the template `base` unless they name another. Without --image, the base image is made on this machine from its Debian mirror, with mmdebstrap, which takes about a minute: a shell, git, curl, Node, Python, and a user with sudo.",
  arguments: [{ usage: "<name>", description: "name of the template, unique within the app" }],
  options: [
    {
      flags: "--image <reference>",
      description: "image to use, such as oci:/srv/tools:latest, in place of the base image",
    },
    {
      flags: "--memory <mb>",
      description: `memory of a sandbox (default: ${DEFAULT_MEMORY}mb)`,
      ...MEMORY_MB,
      unit: "mb",
    },
    {
      flags: "--pool <number>",
      description: "how many machines to keep asleep, ready to be taken (default: 0)",
      minimum: 0,
    },
    ...UPLOAD,
  ],
  ofApp: true,
  examples: [
    "hibernaut sandbox template base --app agents",
    "hibernaut sandbox template base --app agents --memory 1gb --pool 3",
    "hibernaut sandbox template python --app agents --image docker-archive:/srv/python.tar",
  ],
  async run(context, [name = ""], { image, memory = DEFAULT_MEMORY, pool, ...upload }) {
    const client = await context.client();
    // Fails before anything is made for an app that does not exist.
    await client.listTemplates(context.app);
    using stop = interruptible("No template was made.");
    const ref =
      image === undefined ? await baseImage(context, upload, stop.signal) : (await provide(context, image, upload)).ref;
    stop.signal.throwIfAborted();
    const body = {
      from: { image: ref, guest: { memory_mb: memory } },
      name,
      ...given({ warm_pool: pool }),
    };
    const making = client.createTemplate(context.app, body, { signal: stop.signal });
    const made = await context.progress(`Making template ${name}`, making).catch((error: unknown) => {
      throw stop.signal.aborted ? stop.signal.reason : error;
    });
    const next = `\`hibernaut sandbox env --app ${context.app}\` says how clients find it.`;
    return {
      document: made,
      text: `Made template ${made.id} (${made.name}, ${megabytes(made.size_bytes)}). ${next}`,
    };
  },
});

/** Makes the base image, and brings it to the platform. Returns its reference, which needs no file. */
async function baseImage(context: Context, upload: OptionValues<typeof UPLOAD>, signal: AbortSignal): Promise<string> {
  const { buildBase } = await import("@hibernaut/sandboxes/base");
  const builds = buildFolder(process.env);
  requireNoColon(builds);
  const display = displayOf(context, process.stderr);
  const onLine = (line: string) => display.show({ step: "build", line });
  let folder: string | undefined;
  try {
    await mkdir(builds, { recursive: true });
    folder = await mkdtemp(join(builds, "base-"));
    // The platform, which may be another user, reads the archive.
    await chmod(folder, 0o755);
    const archive = join(folder, "base.tar");
    const { digest } = await buildBase({ out: archive, signal, onLine }).finally(() => display.end());
    const { ref } = await provide(context, `oci-archive:${archive}@${digest}`, upload);
    return ref;
  } catch (error) {
    throw explained(error, builds);
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}

interface BuildLine {
  step: "build";
  line: string;
}

/** What the build says: one line that is drawn again on a terminal, all lines elsewhere. */
function displayOf({ json }: Context, stream: NodeJS.WriteStream): Display<BuildLine> {
  if (json) return jsonLines(stream);
  if (stream.isTTY) return oneLine(({ line }) => `Making the base image: ${shown(line, stream)}`, stream);
  stream.write("Making the base image...\n");
  return { show: ({ line }) => void stream.write(shown(`${line}\n`, stream)), end: () => {} };
}

export const sandbox: Noun = {
  name: "sandbox",
  aliases: ["sandboxes"],
  summary: "Make and use sandboxes, and offer them to programs that use E2B's clients (experimental)",
  commands: [...lifeCommands, template, env],
};
