/** Cron expressions of five fields: what is accepted, and why something is not. Pure, and part of the CLI's bundle. */

interface Field {
  name: string;
  minimum: number;
  maximum: number;
  /** Words that stand for numbers, the first for `minimum`. */
  words?: readonly string[];
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/** Days of the longest form of each month. */
const MONTH_DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const FIELDS = [
  { name: "minute", minimum: 0, maximum: 59 },
  { name: "hour", minimum: 0, maximum: 23 },
  { name: "day of month", minimum: 1, maximum: 31 },
  { name: "month", minimum: 1, maximum: 12, words: MONTHS },
  // Both 0 and 7 are Sunday.
  { name: "day of week", minimum: 0, maximum: 7, words: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
] as const satisfies readonly Field[];

const FIELD_NAMES = "minute, hour, day of month, month, day of week";

/**
 * Returns why `expression` is not a cron expression that this platform accepts, as sentences; undefined when it is one.
 * A field is `*`, a number, a name, a range, or a list of these; `*` and ranges may have a step.
 *
 * @example
 * cronRefusal("0 3 * * mon-fri"); // undefined
 * cronRefusal("0 0 30 2 *"); // '"0 0 30 2 *" never runs: ...'
 */
export function cronRefusal(expression: string): string | undefined {
  const texts = expression.trim().split(/\s+/);
  if (texts.length !== FIELDS.length) {
    const seconds = texts.length === FIELDS.length + 1 ? " Seconds are not supported: remove the first field." : "";
    return `"${expression}" has ${texts.length} field${texts.length === 1 ? "" : "s"}, and a cron expression has five: ${FIELD_NAMES}.${seconds}`;
  }
  for (const [index, field] of FIELDS.entries()) {
    const problem = fieldProblem(texts[index] ?? "", field);
    if (problem !== undefined) return `"${expression}" is not a valid schedule: ${problem}`;
  }
  return neverRuns(texts)
    ? `"${expression}" never runs: none of its months has such a day. Choose another day of month or month.`
    : undefined;
}

function fieldProblem(text: string, field: Field): string | undefined {
  for (const part of text.split(",")) {
    const problem = partProblem(part, field);
    if (problem !== undefined) return `in the field ${field.name}, ${problem}`;
  }
  return undefined;
}

function partProblem(part: string, field: Field): string | undefined {
  const [range = "", step, ...more] = part.split("/");
  const [first = "", last, ...others] = range.split("-");
  if (part === "" || more.length > 0 || others.length > 0)
    return `"${part}" cannot be read. Write *, a number, a range such as 1-5, or a list such as 1,3.`;
  if (range !== "*") {
    const [from, to] = [first, last ?? first].map((one) => valueOf(one, field));
    if (from === undefined || to === undefined)
      return `"${part}" does not fit. Use ${field.minimum} to ${field.maximum}.`;
    if (from > to) return `the range "${range}" is turned around. Write it as two, separated by a comma.`;
  }
  if (step === undefined) return undefined;
  if (range !== "*" && last === undefined)
    return `"${part}" has a step without a range. Write */${step}, or ${first}-${field.maximum}/${step}.`;
  if (/^\d{1,2}$/.test(step) && Number(step) >= 1 && Number(step) <= field.maximum) return undefined;
  return `the step in "${part}" does not fit. Use 1 to ${field.maximum}.`;
}

function valueOf(text: string, { minimum, maximum, words = [] }: Field): number | undefined {
  const word = words.indexOf(text.toLowerCase());
  if (word >= 0) return minimum + word;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return value >= minimum && value <= maximum ? value : undefined;
}

/** Whether the day of month exists in none of the months. A day of week is an alternative to it, so it always comes. */
function neverRuns([, , day = "*", month = "*", weekday = "*"]: string[]): boolean {
  if (!weekday.startsWith("*") || day.startsWith("*")) return false;
  const earliest = Math.min(...valuesOf(day, FIELDS[2]));
  return valuesOf(month, FIELDS[3]).every((one) => earliest > (MONTH_DAYS[one - 1] ?? 0));
}

function valuesOf(text: string, field: Field): number[] {
  return text.split(",").flatMap((part) => {
    const [range = "", step = "1"] = part.split("/");
    const [first = "", last = first] = range.split("-");
    const from = range === "*" ? field.minimum : (valueOf(first, field) ?? field.minimum);
    const to = range === "*" ? field.maximum : (valueOf(last, field) ?? field.maximum);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index).filter(
      (value) => (value - from) % Number(step) === 0,
    );
  });
}
