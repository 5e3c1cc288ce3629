/** `hibernaut completion` */
import type { HibernautClient } from "@hibernaut/client";
import { command, type Named, type Noun } from "../command.ts";
import { complete } from "../completion/complete.ts";
import { FILES, SCRIPTS, SHELLS, type Shell } from "../completion/scripts.ts";
import { Context } from "../context.ts";
import { UsageError } from "../failure.ts";
import { given } from "../option-values.ts";

/** Someone waits at a prompt: a platform that takes longer to answer has nothing to offer. */
const NAMES_TIMEOUT_MS = 1500;

/** A name, and what tells it from the others. */
type Name = [word: string, description: string];

type List = (client: HibernautClient, app: () => string, options: { signal: AbortSignal }) => Promise<Name[]>;

/** How the names of each kind are listed. Files are up to the shell. */
const LISTS: Record<Exclude<Named, "file">, List> = {
  app: async (client, _app, options) =>
    (await client.listApps(options)).map(({ name, machine_count: machines }) => [name, `${machines} machines`]),
  machine: async (client, app, options) =>
    (await client.listMachines(app(), options)).map(({ id, name, state }) => [name || id, state]),
  volume: async (client, app, options) =>
    (await client.listVolumes(app(), options)).map(({ id, name, size_gb: size }) => [id, `${name}, ${size} GB`]),
  hostname: async (client, app, options) => (await client.listHostnames(app(), options)).map((name) => [name, ""]),
  certificate: async (client, app, options) =>
    (await client.listCertificates(app(), options)).map(({ hostname, status }) => [hostname, status]),
  secret: async (client, app, options) => (await client.listSecrets(app(), options)).map(({ name }) => [name, ""]),
  token: async (client, _app, options) => (await client.listTokens(options)).map(({ id, name }) => [id, name]),
  webhook: async (client, _app, options) => (await client.listWebhooks(options)).map(({ id, url }) => [id, url]),
  registry: async (client, _app, options) =>
    (await client.listRegistryLogins(options)).map(({ host, username }) => [host, username]),
};

const completion = command({
  name: "completion",
  summary: "Print the completion script of a shell",
  description:
    "Completes commands, options, and the names of apps, machines, volumes, hostnames, secrets and tokens. Load it at the start of your shell, as the examples do.",
  arguments: [{ usage: "<shell>", description: SHELLS.join(", ") }],
  examples: [
    "hibernaut completion bash > /etc/bash_completion.d/hibernaut",
    'hibernaut completion zsh > "${fpath[1]}/_hibernaut"',
    "hibernaut completion fish > ~/.config/fish/completions/hibernaut.fish",
  ],
  async run(_context, [shell = ""]) {
    if (!isShell(shell)) throw new UsageError(`There is no completion for "${shell}". Use ${SHELLS.join(", ")}.`);
    return { document: { shell, script: SCRIPTS[shell] }, text: SCRIPTS[shell].trimEnd() };
  },
});

/** What {@link SCRIPTS} call. It never fails: an error would be printed into the line that someone types. */
function completer(nouns: () => readonly Noun[]) {
  return command({
    name: "__complete",
    hidden: true,
    summary: "List the words that could come next",
    arguments: [{ usage: "[word...]", description: "the words so far, after --" }],
    examples: ["hibernaut __complete -- machine sta"],
    async run(_context, words) {
      const { choices, names } = complete(nouns(), words);
      const lines = choices.map(({ word, description }) => `${word}\t${description}`);
      if (names?.kind === "file") lines.push(FILES);
      else if (names !== undefined) {
        const found = await namesOf(names.kind, new Context(given({ app: names.app })));
        const last = words.at(-1) ?? "";
        for (const [word, description] of found)
          if ((names.before + word).startsWith(last)) lines.push(`${names.before}${word}\t${description}`);
      }
      return { document: undefined, text: lines.join("\n") };
    },
  });
}

async function namesOf(kind: keyof typeof LISTS, context: Context) {
  try {
    return await LISTS[kind](await context.client(), () => context.app, {
      signal: AbortSignal.timeout(NAMES_TIMEOUT_MS),
    });
  } catch {
    return [];
  }
}

function isShell(word: string): word is Shell {
  return (SHELLS as readonly string[]).includes(word);
}

/** The commands of completion. They complete `nouns`, which they are among. */
export function completionCommands(nouns: () => readonly Noun[]) {
  return [completion, completer(nouns)];
}
