/** Variables in a compose file, by the specification's rules: `$NAME`, `${NAME}` and its forms with defaults. Pure. */

/** The value of a variable; undefined if it is not set. */
export type Variables = (name: string) => string | undefined;

/** A text that cannot be interpolated. */
export class InterpolationError extends Error {}

interface Result {
  text: string;
  /** Variables that are not set and have no default: they count as empty, and people should know. */
  unset: string[];
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*/;
/** Defaults can have variables in them. Nobody nests deeper, and who does gets an error, not a full stack. */
const MOST_NESTED = 20;
/** A value that uses another twice, which does so in turn, would soon have no end. */
const MOST_CHARACTERS = 1_000_000;

/** Replaces the variables of a text. Throws {@link InterpolationError} for a required one, and for a form that there is not. */
export function interpolate(text: string, variables: Variables, depth = 0): Result {
  const unset: string[] = [];
  let result = "";
  let at = 0;
  while (at < text.length) {
    const dollar = text.indexOf("$", at);
    if (dollar === -1) break;
    result += text.slice(at, dollar);
    const rest = text.slice(dollar + 1);
    if (rest.startsWith("$")) {
      result += "$";
      at = dollar + 2;
      continue;
    }
    const bare = NAME.exec(rest)?.[0];
    if (bare !== undefined) {
      result += valueOf(bare);
      at = dollar + 1 + bare.length;
      continue;
    }
    const end = rest.startsWith("{") ? closing(rest) : -1;
    if (end === -1)
      throw new InterpolationError(
        `\`${text.slice(dollar, dollar + 40)}\` is not a variable. Write $$ for a dollar sign.`,
      );
    result += braced(rest.slice(1, end));
    at = dollar + 1 + end + 1;
  }
  return { text: bounded(result + text.slice(at)), unset };

  function valueOf(name: string): string {
    const value = variables(name);
    if (value === undefined) unset.push(name);
    return value ?? "";
  }

  function braced(inside: string): string {
    const name = NAME.exec(inside)?.[0];
    const [, operator = "", word = ""] = /^(:?[-?+])?([^]*)$/.exec(inside.slice(name?.length ?? 0)) ?? [];
    if (name === undefined || (operator === "" && word !== ""))
      throw new InterpolationError(`\`\${${inside.slice(0, 40)}}\` is not a variable.`);
    if (operator === "") return valueOf(name);
    const value = variables(name);
    const isGiven = value !== undefined && (value !== "" || !operator.startsWith(":"));
    switch (operator.at(-1)) {
      case "-":
        return isGiven ? value : nested(word);
      case "+":
        return isGiven ? nested(word) : "";
      default:
        if (isGiven) return value;
        throw new InterpolationError(`The variable ${name} is required${word === "" ? "" : `: ${nested(word)}`}.`);
    }
  }

  function nested(word: string): string {
    if (depth >= MOST_NESTED) throw new InterpolationError("Variables are nested too deeply.");
    const inner = interpolate(word, variables, depth + 1);
    unset.push(...inner.unset);
    return inner.text;
  }
}

function bounded(text: string): string {
  if (text.length <= MOST_CHARACTERS) return text;
  throw new InterpolationError(`A value has more than ${MOST_CHARACTERS} characters.`);
}

/** Where the brace ends that the text begins with; -1 if it does not. */
function closing(text: string): number {
  let open = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text.startsWith("${", at) || (at === 0 && text[0] === "{")) open += 1;
    else if (text[at] === "}") {
      open -= 1;
      if (open === 0) return at;
    }
  }
  return -1;
}
