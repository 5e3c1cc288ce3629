/** Times for people, in the time zone of the reader (`TZ`). Documents for programs keep RFC 3339 in UTC. */

const MS_PER_MINUTE = 60_000;
/** A day, and the time in it, with or without a zone: as the CLI prints times, and as people write them. */
const WRITTEN = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(Z|[+-]\d\d:\d\d)?$/i;

/**
 * `2026-01-31 14:30:05 +01:00`: the time here, with the offset of the zone at that moment.
 *
 * @param time RFC 3339, or a date. A text that is not a time is returned as it is.
 */
export function localTime(time: string | Date): string {
  const at = inZone(new Date(time));
  return at === undefined ? String(time) : `${at.day} ${at.clock.slice(0, 8)} ${at.offset}`;
}

/**
 * `2026-01-31T14:30:05.123+01:00`: the same as one word with milliseconds, for logs. It is RFC 3339, too: in UTC, nothing
 * changes.
 */
export function localWord(time: string): string {
  const at = inZone(new Date(time));
  if (at === undefined) return time;
  return `${at.day}T${at.clock}${at.offset === "+00:00" ? "Z" : at.offset}`;
}

/**
 * A moment that the user wrote, for the platform. A time without a zone is that of the reader's zone; the platform reads
 * everything else, such as `10m` or `2026-01-31`.
 *
 * @example
 * writtenTime("2026-01-31 14:30"); // "2026-01-31T13:30:00.000Z" in Paris
 */
export function writtenTime(text: string): string {
  const [, day = "", clock = "", zone = ""] = WRITTEN.exec(text.trim()) ?? [];
  // The platform explains what is wrong with a time that there is not.
  const at = new Date(`${day}T${clock}${zone}`);
  return day === "" || Number.isNaN(at.getTime()) ? text : at.toISOString();
}

function inZone(date: Date): { day: string; clock: string; offset: string } | undefined {
  if (Number.isNaN(date.getTime())) return undefined;
  const minutes = -date.getTimezoneOffset();
  const text = new Date(date.getTime() + minutes * MS_PER_MINUTE).toISOString();
  return { day: text.slice(0, 10), clock: text.slice(11, 23), offset: offsetText(minutes) };
}

/** `+05:30`; `+00:00` for UTC. */
function offsetText(minutes: number): string {
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `${minutes < 0 ? "-" : "+"}${String(hours).padStart(2, "0")}:${String(rest).padStart(2, "0")}`;
}
