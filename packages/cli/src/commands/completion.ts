/** `hibernaut completion` */
import { command, type Noun } from "../command.ts";
import { complete } from "../completion/complete.ts";
import { LISTS, NAMES_TIMEOUT_MS } from "../completion/names.ts";
import { FILES, SCRIPTS, type Shell, SHELLS } from "../completion/scripts.ts";
import { Context } from "../context.ts";
import { UsageError } from "../failure.ts";

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
        const found = await namesOf(names.kind, new Context({ ...(names.app !== undefined && { app: names.app }) }));
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
    return await LISTS[kind](await context.client(), () => context.app, AbortSignal.timeout(NAMES_TIMEOUT_MS));
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
