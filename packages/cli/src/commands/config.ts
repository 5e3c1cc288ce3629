/** `hibernaut config`: the app file, looked at without a platform. */
import { APP_FILES } from "../appfile/find.ts";
import { count, readNamed, refusal } from "../appfile/named.ts";
import { command, type Noun, type Option } from "../command.ts";

interface FileOptions {
  config?: string;
}

const CONFIG: Option = {
  flags: "-c, --config <file>",
  description: `the app file; else ${APP_FILES.map((name) => `./${name}`).join(", else ")}`,
};

const validate = command<FileOptions & { strict?: boolean }>({
  name: "validate",
  summary: "Check the app file",
  description: "Lists errors, and every key that has no effect here, each with its line and column.",
  options: [CONFIG, { flags: "--strict", description: "fail on warnings too" }],
  examples: ["hibernaut config validate", "hibernaut config validate --config deploy/fly.toml --strict"],
  async run(_context, _args, { config, strict = false }) {
    const { name, findings } = await readNamed(config);
    const { findingText } = await import("../appfile/findings.ts");
    const errors = findings.filter(({ severity }) => severity === "error").length;
    const warnings = findings.length - errors;
    const ok = errors === 0 && !(strict && warnings > 0);
    const verdict = `${name} is valid${warnings > 0 ? `, with ${count(warnings, "warning")}` : ""}.`;
    const lines = findings.map((finding) => findingText(finding, name));
    return {
      document: { file: name, ok, findings },
      text: [...lines, ...(ok ? [verdict] : [])].join("\n"),
      failures: ok ? [] : [refusal(name, errors, warnings)],
    };
  },
});

const show = command<FileOptions & { image?: string }>({
  name: "show",
  summary: "Show the machines that the app file means",
  description: "Prints the machine configuration of each process group as JSON. Findings go to standard error.",
  options: [CONFIG, { flags: "--image <reference>", description: "image to run, instead of the file's" }],
  examples: ["hibernaut config show", "hibernaut config show --config fly.toml --image docker-archive:/srv/shop.tar"],
  async run(_context, _args, { config, image }) {
    const { name, file, findings } = await readNamed(config);
    const [{ findingText }, { machineConfigs }] = await Promise.all([
      import("../appfile/findings.ts"),
      import("../appfile/machine-configs.ts"),
    ]);
    for (const finding of findings) process.stderr.write(`${findingText(finding, name)}\n`);
    if (file === undefined) throw refusal(name, findings.filter(({ severity }) => severity === "error").length, 0);
    const groups = Object.fromEntries(machineConfigs(file, { image }));
    const document = { app: file.app ?? null, groups };
    return { document, text: JSON.stringify(document, null, 2) };
  },
});

/** The commands about the app file. */
export const config: Noun = {
  name: "config",
  summary: "Check the app file, hibernaut.toml or fly.toml",
  commands: [validate, show],
};
