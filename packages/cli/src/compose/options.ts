/** What names a project on the command line. Apart, so that `--help` does not load what reads one. */
import type { Option, OptionValues } from "../command.ts";

/** The options of every command about a project. */
export const PROJECT = [
  {
    flags: "-f, --file <file>",
    names: "file",
    description: "a compose file; repeat to lay others over it (default: compose.yaml here or above)",
    repeats: true,
  },
  { flags: "-p, --project-name <name>", description: "name of the project (default: the directory's)" },
  { flags: "--profile <name>", description: "also the services of this profile; may repeat", repeats: true },
  { flags: "--preview <name>", description: "a preview of the project, such as pr-12, in place of the project itself" },
  { flags: "--env-file <file>", description: "a file of variables in place of .env; may repeat", repeats: true },
] as const satisfies readonly Option[];

export type ProjectOptions = OptionValues<typeof PROJECT>;
