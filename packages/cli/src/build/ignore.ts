/** Which files of a directory stay out of its image: the rules of `.dockerignore`. Pure. */

/** Tells whether a file or directory is left out. Paths are relative, with slashes. */
export interface Ignore {
  (path: string): boolean;
  /** Whether something below an ignored directory may be wanted, because a rule begins with `!`. */
  hasExceptions: boolean;
}

/** What is left out unless an ignore file brings it back, as in `!.env`. */
export const IGNORED_BY_DEFAULT = [
  "**/.git",
  "**/.hg",
  "**/.svn",
  "**/.DS_Store",
  "**/node_modules",
  "**/__pycache__",
  "**/.venv",
  "**/.env",
  "**/.env.*",
  "**/.npmrc",
  "hibernaut.toml",
  "fly.toml",
  ".dockerignore",
];

/** Reads rules, one in a line as in `.dockerignore`. The last rule that applies to a path decides. */
export function ignoring(lines: readonly string[]): Ignore {
  const rules = lines.flatMap((line) => {
    const text = line.trim();
    if (text === "" || line.startsWith("#")) return [];
    const exception = text.startsWith("!");
    const pattern = normalized(exception ? text.slice(1) : text);
    return pattern === "" ? [] : [{ exception, pattern: toPattern(pattern) }];
  });
  const ignores = (path: string) => rules.findLast(({ pattern }) => pattern.test(path))?.exception === false;
  return Object.assign(ignores, { hasExceptions: rules.some(({ exception }) => exception) });
}

/** Without `./`, slashes at both ends, and steps upward, which cannot leave the directory. */
function normalized(pattern: string): string {
  return pattern
    .trim()
    .split("/")
    .filter((part) => part !== "" && part !== "." && part !== "..")
    .join("/");
}

/** A rule also applies to everything below what it names. */
function toPattern(glob: string): RegExp {
  let source = "";
  for (let at = 0; at < glob.length; at += 1) {
    const rest = glob.slice(at);
    const [group] = /^\[[^\]/]+\]/.exec(rest) ?? [];
    if (rest.startsWith("**/")) [source, at] = [`${source}(?:.*/)?`, at + 2];
    else if (rest.startsWith("**")) [source, at] = [`${source}.*`, at + 1];
    else if (rest[0] === "*") source += "[^/]*";
    else if (rest[0] === "?") source += "[^/]";
    else if (group !== undefined) [source, at] = [source + classOf(group), at + group.length - 1];
    else if (rest[0] === "\\" && rest.length > 1) [source, at] = [source + escaped(rest[1] ?? ""), at + 1];
    else source += escaped(rest[0] ?? "");
  }
  return new RegExp(`^${source}(?:/.*)?$`, "s");
}

/** `[a-c]` and `[^a-c]`; anything else that a regular expression would give a meaning is escaped. */
function classOf(group: string): string {
  const inner = group.slice(1, -1);
  const negated = inner.startsWith("^") || inner.startsWith("!");
  const members = (negated ? inner.slice(1) : inner).replace(/[\\\]^&|~]/g, "\\$&");
  try {
    return new RegExp(`[${negated ? "^/" : ""}${members}]`).source;
  } catch {
    return escaped(group); // a range from high to low matches only itself
  }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
