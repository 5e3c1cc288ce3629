/** `hibernaut config`: checks the app file, without a platform. */
import { APP_FILES } from "../appfile/find.ts";
import { count, readNamed, unusable } from "../appfile/named.ts";
import { command, type Noun, type Option } from "../command.ts";

const CONFIG = {
  flags: "-c, --config <file>",
  names: "file",
  description: `the app file (default: ${APP_FILES.map((name) => `./${name}`).join(", or ")})`,
} as const satisfies Option;

const validate = command({
  name: "validate",
  summary: "Check the app file",
  description:
    "Lists errors, files that it names and that cannot be read, and every key that has no effect here, each with its line and column.",
  options: [CONFIG, { flags: "--strict", description: "fail on warnings too" }],
  examples: ["hibernaut config validate", "hibernaut config validate --config deploy/fly.toml --strict"],
  async run(_context, _args, { config, strict = false }) {
    const { name, findings } = await readNamed(config, { complete: true });
    const { findingText } = await import("../appfile/findings.ts");
    const errors = findings.filter(({ severity }) => severity === "error").length;
    const warnings = findings.length - errors;
    const ok = errors === 0 && !(strict && warnings > 0);
    const verdict = `${name} is valid${warnings > 0 ? `, with ${count(warnings, "warning")}` : ""}.`;
    const lines = findings.map((finding) => findingText(finding, name));
    return {
      document: { file: name, ok, findings },
      text: [...lines, ...(ok ? [verdict] : [])].join("\n"),
      failures: ok ? [] : [unusable(name, errors, warnings)],
    };
  },
});

const show = command({
  name: "show",
  summary: "Show the machine configurations that the app file describes",
  description: "Prints the configuration of each process group as JSON. Errors and warnings go to standard error.",
  options: [CONFIG, { flags: "--image <reference>", description: "image to run instead of the file's" }],
  examples: ["hibernaut config show", "hibernaut config show --config fly.toml --image docker-archive:/srv/shop.tar"],
  async run(context, _args, { config, image }) {
    const { name, file, findings } = await readNamed(config);
    const [{ findingText }, { machineConfigs }, { withLocalFiles }] = await Promise.all([
      import("../appfile/findings.ts"),
      import("../appfile/machine-configs.ts"),
      import("../appfile/files.ts"),
    ]);
    for (const finding of findings) context.say(findingText(finding, name));
    if (file === undefined) throw unusable(name, findings.filter(({ severity }) => severity === "error").length, 0);
    const groups = Object.fromEntries(machineConfigs(withLocalFiles(file, name), { image }));
    const document = { app: file.app ?? null, groups };
    return { document, text: JSON.stringify(document, null, 2) };
  },
});

export const config: Noun = {
  name: "config",
  summary: "Check the app file, hibernaut.toml or fly.toml",
  commands: [validate, show],
};
