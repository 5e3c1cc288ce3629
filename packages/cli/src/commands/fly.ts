/** `hibernaut fly`: what programs that use Fly's clients need. */
import { command, type Noun } from "../command.ts";
import { isAppNamed } from "../config.ts";
import { flyEnvironment } from "../fly-environment.ts";
import { exportLines } from "../sandbox-environment.ts";
import { lines } from "../terminal.ts";

const env = command({
  name: "env",
  summary: "Print the variables with which Fly's clients find this platform",
  description:
    "Reads the settings of this host, as `serve` does: run it on the platform's host, with the environment that `serve` has.",
  options: [{ flags: "-a, --app <name>", description: "the app that flyctl's commands are about", names: "app" }],
  examples: ["hibernaut fly env --app shop", 'eval "$(hibernaut fly env)"'],
  async run(context) {
    const { readSettings } = await import("@hibernaut/settings");
    const app = isAppNamed(context.namedApp, process.env, process.cwd()) ? context.app : undefined;
    const environment = flyEnvironment(readSettings(process.env), app);
    const hint = "# Set FLY_API_TOKEN, too, to a token: hibernaut tokens create <name>";
    return { document: environment, text: lines(...exportLines(environment), hint) };
  },
});

export const fly: Noun = {
  name: "fly",
  summary: "Offer the platform to programs that use Fly's clients (experimental)",
  commands: [env],
};
