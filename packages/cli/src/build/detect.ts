/** What kind of directory this is, and so how its image is built. Pure. */
import { DOCKERFILES, type Folder } from "../appfile/folder.ts";
import { CliError } from "../failure.ts";

/** The ways to build an image; `builder` under `[build]` in the app file. */
export const BUILDERS = ["node", "static", "python", "go", "dockerfile"] as const;
export type Builder = (typeof BUILDERS)[number];

/** Files that a Node app starts with, if neither the script `start` nor `main` says so; the first that exists. */
const NODE_FILES = ["server.js", "server.mjs", "index.js", "index.mjs", "app.js", "main.js"];
/** The same for Python. */
export const PYTHON_FILES = ["main.py", "app.py", "server.py"];

/** A builder, and why it was chosen: the end of the sentence "This is a ... directory, because it has ...". */
export interface Detected {
  builder: Builder;
  because: string;
}

/** The first of these that fits; undefined when none does. */
export function detect(folder: Folder): Detected | undefined {
  const { entries, packageJson, dockerfile } = folder;
  const first = (names: readonly string[]) => names.find((name) => entries.includes(name));
  const found = (builder: Builder, because: string | undefined) =>
    because === undefined ? [] : [{ builder, because }];
  return [
    ...found("dockerfile", dockerfile === undefined ? undefined : first(DOCKERFILES)),
    ...found("go", first(["go.mod"])),
    ...found("node", nodeStart(folder) === undefined ? undefined : packageJson ? "package.json" : first(NODE_FILES)),
    ...found("python", first(["requirements.txt", ...PYTHON_FILES])),
    ...found("static", folder.pages === undefined ? undefined : joined(folder.pages, "index.html")),
  ][0];
}

/** The builder to use: the one that the app file names, or the one that fits. Throws `build_unknown` when none does. */
export function chooseBuilder(folder: Folder, wanted: Builder | undefined): Builder {
  const builder = wanted ?? detect(folder)?.builder;
  if (builder !== undefined) return builder;
  const hint =
    folder.packageJson === undefined
      ? "Add a Dockerfile, a package.json with a start script, a requirements.txt with an app.py, a go.mod or an index.html"
      : 'Add a start script to package.json, as in "start": "node server.js", or a file server.js or index.js';
  throw new CliError(
    "build_unknown",
    `${folder.path} has nothing that an image can be built from. ${hint}; or name a finished image with --image.`,
  );
}

/** What starts a Node app: its script `start`, or a file. */
export function nodeStart({ entries, packageJson }: Folder): { script: string } | { file: string } | undefined {
  const { start } = (packageJson?.scripts ?? {}) as { start?: unknown };
  if (typeof start === "string" && start.trim() !== "") return { script: start.trim() };
  const { main } = packageJson ?? {};
  if (typeof main === "string" && main !== "" && entries.includes(main.replace(/^\.\//, "").split("/")[0] ?? ""))
    return { file: main };
  const file = NODE_FILES.find((name) => entries.includes(name));
  return file === undefined ? undefined : { file };
}

function joined(folder: string, name: string): string {
  return folder === "." ? name : `${folder}/${name}`;
}
