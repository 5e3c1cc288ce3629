/** Durations of Fly's clients: nanoseconds, or a text as Go writes it, such as `1m30s`. Pure. */
import { Refusal } from "../failure.ts";

const NANOSECONDS_IN_MS = 1_000_000;
const UNITS_IN_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const PART = /(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/gy;

/** Milliseconds. Throws a {@link Refusal} that names the field. */
export function durationMs(value: number | string, field: string): number {
  if (typeof value === "number") return value / NANOSECONDS_IN_MS;
  PART.lastIndex = 0;
  const parts = [...value.matchAll(PART)];
  const whole = parts.map(([part]) => part).join("");
  if (parts.length > 0 && whole === value)
    return parts.reduce((sum, [, number = "", unit = ""]) => sum + Number(number) * (UNITS_IN_MS[unit] ?? 0), 0);
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  throw new Refusal(
    400,
    `invalid_argument: ${field} is ${JSON.stringify(value).slice(0, 50)}. Send a text such as "15s" or "1m30s", or nanoseconds.`,
  );
}

/** As the platform's checks have it: whole milliseconds. */
export function durationText(value: number | string, field: string): string {
  return `${Math.round(durationMs(value, field))}ms`;
}
