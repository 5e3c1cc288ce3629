/** How quantities and times are written. Pure. */

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Below this, cents are too coarse to tell prices apart. */
const SMALL_AMOUNT = 1;

/** Writes a time span in its largest fitting unit, such as `4.2 s` or `3 min`. */
export function duration(ms: number): string {
  const value = Math.max(0, ms);
  if (value < SECOND_MS) return `${Math.round(value)} ms`;
  if (value < 10 * SECOND_MS) return `${(Math.floor(value / 100) / 10).toFixed(1)} s`;
  if (value < 2 * MINUTE_MS) return `${Math.floor(value / SECOND_MS)} s`;
  if (value < 2 * HOUR_MS) return `${Math.floor(value / MINUTE_MS)} min`;
  if (value < 2 * DAY_MS) return `${Math.floor(value / HOUR_MS)} h`;
  return `${Math.floor(value / DAY_MS)} days`;
}

/** Writes a number of bytes, such as `1.5 GB` of 1024 MB. */
export function bytes(size: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let value = Math.max(0, size);
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit < 2 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** Writes an amount of money, such as `€0.54`, in the user's way. */
export function money(amount: number, currency: string): string {
  const digits = amount !== 0 && Math.abs(amount) < SMALL_AMOUNT ? { maximumSignificantDigits: 2 } : {};
  return new Intl.NumberFormat(undefined, { style: "currency", currency, ...digits }).format(amount);
}

/** Writes a number with its noun, such as `1 machine` or `2 machines`. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Writes a share of a whole as a percentage. A small part of something does not become nothing, and not all. */
export function share(part: number, whole: number): string {
  if (whole <= 0) return "0%";
  const percent = (100 * part) / whole;
  if (percent > 0 && percent < 1) return "<1%";
  if (percent > 99 && percent < 100) return ">99%";
  return `${Math.round(percent)}%`;
}

/** Writes a time of day, such as `14:05:09`, in the user's time zone. */
export function timeOfDay(ms: number): string {
  return new Date(ms).toLocaleTimeString(undefined, { hour12: false });
}

/** Writes the hour and minute of a time, such as `14:30`, in the user's time zone, which may be half an hour off others. */
export function hourOf(time: string | number): string {
  const at = new Date(time);
  return `${at.getHours()}:${String(at.getMinutes()).padStart(2, "0")}`;
}

/** Writes a date and time in the user's time zone. */
export function moment(time: string | number): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium", hour12: false });
}

/** Writes how long ago something was, or in how long it will be. */
export function ago(at: number, now: number): string {
  const ms = now - at;
  if (Math.abs(ms) < SECOND_MS) return "now";
  return ms > 0 ? `${duration(ms)} ago` : `in ${duration(-ms)}`;
}

/** Writes how long something has lasted that is known for `knownMs` back: what began then began earlier. */
export function lasting(at: number, now: number, knownMs: number): string {
  return at <= now - knownMs ? `more than ${duration(knownMs)}` : duration(now - at);
}
