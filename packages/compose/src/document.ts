/** One compose file: YAML with its anchors, merge keys and tags, and its variables replaced. Pure. */
import { LineCounter, parseDocument, type ScalarTag } from "yaml";
import type { Findings } from "./findings.ts";
import { InterpolationError, interpolate, type Variables } from "./interpolate.ts";
import { OVERRIDE, RESET } from "./merge.ts";
import { isMapping, type Mapping, type Value } from "./values.ts";

/** A file with more aliases than this is not meant to be read: each can stand for many more. */
const MOST_ALIASES = 200;
/** Nor is a larger one, in characters. The largest that we know has a hundredth. */
const MOST_CHARACTERS = 1_000_000;
/** Nor has it more values, each counted as often as an alias stands for it: below the limit above, they would still fill all memory. */
const MOST_VALUES = 100_000;

/**
 * Returns the content of a file. Undefined after an error among the findings.
 *
 * @param name how findings call the file
 */
export function readDocument(
  { text, name }: { text: string; name: string },
  { variables, findings }: { variables: Variables; findings: Findings },
): Mapping | undefined {
  if (text.length > MOST_CHARACTERS) return findings.error("", `${name} is too large for a compose file.`);
  const lines = new LineCounter();
  const document = parseDocument(text, {
    merge: true,
    lineCounter: lines,
    customTags: (known) => [OCTAL, ...known, ...tag("!reset", RESET), ...tag("!override", OVERRIDE)],
    version: "1.2",
  });
  const [problem] = document.errors;
  if (problem !== undefined) {
    const { line, col } = lines.linePos(problem.pos[0]);
    return findings.error("", `${name}:${line}:${col}: ${firstLine(problem.message)}`);
  }
  let value: Value;
  try {
    value = document.toJS({ maxAliasCount: MOST_ALIASES }) as Value;
  } catch (error) {
    return findings.error("", `${name}: ${firstLine(String(error))}`);
  }
  if (value === null) return findings.error("", `${name} is empty.`);
  if (!isMapping(value))
    return findings.error("", `${name} is not a compose file: it should begin with \`services:\`.`);
  const replacing = { variables, findings, left: MOST_VALUES };
  const { "": _, ...result } = replaced(value, [], replacing) as Mapping;
  if (replacing.left < 0) return findings.error("", `${name} has more than ${MOST_VALUES} values, with its aliases.`);
  return result;
}

/** Modes of files are written as `0400`, which YAML 1.2 alone would take for four hundred. */
const OCTAL: ScalarTag = {
  ...{ tag: "tag:yaml.org,2002:int", default: true, format: "OCT", test: /^0[0-7]+$/ },
  resolve: (text: string) => Number.parseInt(text, 8),
};

/** A tag that stays with its value, whatever that is. */
function tag(name: string, key: string) {
  const resolve = (inner: unknown) => ({ [key]: inner });
  return [
    { tag: name, resolve: (text: string) => resolve(text === "" || text === "null" ? null : text) },
    { tag: name, collection: "map" as const, resolve: (node: { toJSON(): unknown }) => resolve(node.toJSON()) },
    { tag: name, collection: "seq" as const, resolve: (node: { toJSON(): unknown }) => resolve(node.toJSON()) },
  ];
}

interface Replacing {
  variables: Variables;
  findings: Findings;
  /** How many more values there may be. What comes after too many is left out. */
  left: number;
}

/** Values have variables, and keys have none. */
function replaced(value: Value, path: readonly string[], replacing: Replacing): Value {
  replacing.left -= 1;
  if (replacing.left < 0) return null;
  if (Array.isArray(value)) return value.map((one) => replaced(one, path, replacing));
  if (isMapping(value))
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [key, replaced(one, [...path, key], replacing)]),
    );
  if (typeof value !== "string" || !value.includes("$")) return value;
  const { variables, findings } = replacing;
  const at = path.join(".");
  try {
    const { text, unset } = interpolate(value, variables);
    for (const name of unset)
      findings.warn(
        at,
        `The variable ${name} is not set, and counts as empty. Set it in .env, or write \${${name}:-default}.`,
      );
    return text;
  } catch (error) {
    if (!(error instanceof InterpolationError)) throw error;
    findings.error(at, error.message);
    return value;
  }
}

function firstLine(text: string): string {
  return (text.split("\n", 1)[0] ?? "").replace(/ at line \d+, column \d+:$/, "");
}
