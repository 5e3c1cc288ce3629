/** How a Python app is started. Pure. */
import type { Folder } from "../appfile/folder.ts";
import { CliError } from "../failure.ts";
import { PYTHON_FILES } from "./detect.ts";
import type { Job } from "./job.ts";

/** Servers for Python's web interfaces, and how each is told where the app is. The first that is required is used. */
const SERVERS: readonly { name: string; words(module: string, port: number): string[] }[] = [
  { name: "gunicorn", words: (module, port) => ["gunicorn", "--bind", `0.0.0.0:${port}`, `${module}:app`] },
  {
    name: "uvicorn",
    words: (module, port) => ["uvicorn", "--host", "0.0.0.0", "--port", String(port), `${module}:app`],
  },
  {
    name: "flask",
    words: (module, port) => ["flask", "--app", module, "run", "--host", "0.0.0.0", "--port", String(port)],
  },
];

/**
 * The command, from the files of the directory and the text of its requirements. Throws when nothing can be started, and the
 * app file does not say what the machines run either.
 */
export function pythonCommand(
  { entries, path }: Folder,
  requirements: string,
  { port, commandNamed }: Pick<Job, "port" | "commandNamed">,
): string[] {
  const file = PYTHON_FILES.find((name) => entries.includes(name));
  if (file === undefined && commandNamed) return ["python3"];
  if (file === undefined)
    throw new CliError(
      "build_unknown",
      `${path} has no ${PYTHON_FILES.join(", ")}, so it is not known how the app starts. Add one of them, name the command under [processes] in the app file, or write a Dockerfile.`,
    );
  const required = requirementNames(requirements);
  const server = SERVERS.find(({ name }) => required.includes(name));
  if (server === undefined) return ["python3", file];
  return ["python3", "-m", ...server.words(file.replace(/\.py$/, ""), port)];
}

/** The packages that a requirements.txt names, in lower case. */
export function requirementNames(text: string): string[] {
  return text.split("\n").flatMap((line) => /^\s*([A-Za-z0-9][\w.-]*)/.exec(line)?.[1]?.toLowerCase() ?? []);
}
