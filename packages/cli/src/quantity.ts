/** Numbers, sizes and durations as users type them, in the same forms as in the app file. */
import { parseMegabytes, parseSeconds } from "./appfile/quantities.ts";
import { UsageError } from "./failure.ts";

/** What a plain number counts. */
export type Unit = "seconds" | "life" | "mb" | "gb" | "days";

/** What is accepted: whole numbers, of the unit if there is one. */
export interface Quantity {
  minimum: number;
  maximum?: number | undefined;
  unit?: Unit | undefined;
}

/** Nine digits: anything longer is a typing error, and still far from where numbers become inexact. */
const MOST = 999_999_999;
const MB_PER_GB = 1024;
const DAY_S = 86_400;

const READ: Record<Unit, (text: string) => number | undefined> = {
  seconds: (text) => parseSeconds(text, "s"),
  life: (text) => (/^\d+d$/.test(text) ? Number(text.slice(0, -1)) * DAY_S : parseSeconds(text, "s")),
  mb: (text) => parseMegabytes(text, "m"),
  gb: (text) => scaled(parseMegabytes(text, "g"), MB_PER_GB),
  days: (text) => plain(text.replace(/d$/, "")),
};

/**
 * The value of a text, or undefined when the text is not accepted.
 *
 * @example
 * readQuantity("1m30s", { unit: "seconds", minimum: 1 }); // 90
 * readQuantity("2048mb", { unit: "gb", minimum: 1 }); // 2
 */
export function readQuantity(text: string, { minimum, maximum = MOST, unit }: Quantity): number | undefined {
  const value = (unit === undefined ? plain : READ[unit])(text);
  return value !== undefined && Number.isInteger(value) && value >= minimum && value <= maximum ? value : undefined;
}

/** The accepted forms with examples: the second half of an error message. */
export function acceptedForms({ minimum, maximum, unit }: Quantity): string {
  const most = (name: string) => (maximum === undefined ? "" : ` and at most ${maximum}${name}`);
  switch (unit) {
    case "seconds": {
      const least = `${minimum} ${minimum === 1 ? "second" : "seconds"}`;
      const longest = maximum === undefined ? "" : ` and at most ${spanText(maximum, 3600, "h")}`;
      return `Use at least ${least}${longest}, in whole seconds or with the units s, m and h, as in 90, 90s, 5m or 1h30m.`;
    }
    case "life":
      return `Use at least ${spanText(minimum)} and at most ${spanText(maximum ?? MOST)}, as in 90d, 24h or 30m.`;
    case "mb":
      return `Use at least ${minimum} MB${most(" MB")}, in whole megabytes, as in 512, 512mb or 1gb.`;
    case "gb":
      return `Use at least ${minimum} GB${most(" GB")}, in whole gigabytes, as in 2, 2gb or 2048mb.`;
    case "days":
      return `Use at least ${minimum}${most("")} in whole days, as in 7 or 7d.`;
    default:
      return `Use a whole number of at least ${minimum}${most("")}, as in ${Math.max(minimum, 1)}.`;
  }
}

/** `30d` or `60s`: in the larger unit if it is whole. */
function spanText(seconds: number, unitS = DAY_S, unit = "d"): string {
  return seconds > 0 && seconds % unitS === 0 ? `${seconds / unitS}${unit}` : `${seconds}s`;
}

/** The value of an argument. Throws a usage error that says what is accepted. */
export function quantityArgument(text: string, quantity: Quantity): number {
  const value = readQuantity(text, quantity);
  if (value === undefined) throw new UsageError(`\`${text}\` is not valid. ${acceptedForms(quantity)}`);
  return value;
}

function plain(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

function scaled(value: number | undefined, by: number): number | undefined {
  return value === undefined ? undefined : value / by;
}
