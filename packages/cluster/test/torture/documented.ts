/** Which errors the documents say that clients may see while hosts fail. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const DOCUMENT = join(import.meta.dirname, "../../../../docs/cluster.md");
const HEADING = "## What clients see while hosts fail";

/** The codes in the table under that heading of docs/cluster.md. */
export function documentedErrors(): Set<string> {
  const [, section = ""] = readFileSync(DOCUMENT, "utf8").split(`${HEADING}\n`);
  const [table = ""] = section.split("\n#");
  const firsts = table.split("\n").map((line) => /^\| (.*?) \|/.exec(line)?.[1] ?? "");
  const codes = firsts.flatMap((first) => [...first.matchAll(/`(\w+)`/g)].map(([, code = ""]) => code));
  if (codes.length === 0) throw new Error(`docs/cluster.md has no table under "${HEADING}"`);
  return new Set(codes);
}
