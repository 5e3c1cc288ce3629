/** Times for people, in the time zone of the reader (`TZ`). Documents for programs keep RFC 3339 in UTC. */

const MS_PER_MINUTE = 60_000;

/**
 * `2026-01-31 14:30:05 +01:00`: the time here, with the offset that the zone has at that moment.
 *
 * @param time RFC 3339, or a date. A text that is not a time is returned as it is.
 */
export function localTime(time: string | Date): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const offset = -date.getTimezoneOffset();
  const text = new Date(date.getTime() + offset * MS_PER_MINUTE).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)} ${offsetText(offset)}`;
}

/** The same with milliseconds, which tell the lines of a log apart. */
export function localTimeMs(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const milliseconds = String(date.getUTCMilliseconds()).padStart(3, "0");
  return localTime(date).replace(/(:\d\d) /, `$1.${milliseconds} `);
}

/** `+05:30`; `+00:00` for UTC. */
function offsetText(minutes: number): string {
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `${minutes < 0 ? "-" : "+"}${String(hours).padStart(2, "0")}:${String(rest).padStart(2, "0")}`;
}
