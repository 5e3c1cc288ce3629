/** The schedule of a machine: its forms, and why one is refused. Pure, and part of the CLI's bundle. */
import { cronRefusal } from "./cron.ts";

/** Fly's intervals, which count from the creation of the machine. */
const SCHEDULE_WORDS = ["hourly", "daily", "weekly", "monthly"] as const;

export const DEFAULT_TIMEZONE = "UTC";

/** No valid cron expression is longer, unless it lists what a range says shorter. */
export const SCHEDULE_MAX_LENGTH = 200;

/** What a machine's configuration says about when it starts. */
interface ScheduleKeys {
  schedule?: string | undefined;
  schedule_timezone?: string | undefined;
}

/** Returns which key is wrong and why, as sentences that say what to do; undefined when both fit. */
export function scheduleRefusal({
  schedule,
  schedule_timezone: timezone,
}: ScheduleKeys): { key: keyof ScheduleKeys; message: string } | undefined {
  if (schedule === undefined && timezone !== undefined)
    return { key: "schedule_timezone", message: "A time zone without a `schedule` has no effect. Set `schedule` too." };
  const message = schedule === undefined ? undefined : whenRefusal(schedule);
  if (message !== undefined) return { key: "schedule", message };
  if (timezone === undefined || isTimezone(timezone)) return undefined;
  return {
    key: "schedule_timezone",
    message: `"${timezone}" is not a known time zone. Use a name of the IANA database, such as Europe/Berlin, America/New_York or UTC.`,
  };
}

/** Returns whether this is an interval of Fly, which counts from the creation of the machine. */
export function isScheduleWord(schedule: string): schedule is (typeof SCHEDULE_WORDS)[number] {
  return (SCHEDULE_WORDS as readonly string[]).includes(schedule);
}

function whenRefusal(schedule: string): string | undefined {
  if (isScheduleWord(schedule)) return undefined;
  if (schedule.length <= SCHEDULE_MAX_LENGTH && /[\s*]/.test(schedule.trim())) return cronRefusal(schedule);
  const shown = schedule.slice(0, 100);
  return `"${shown}" is not a valid schedule. Use ${SCHEDULE_WORDS.join(", ")}, or a cron expression such as "0 3 * * *".`;
}

/** Offsets such as +02:00 are refused: daylight saving time, the reason to set a zone, does not change them. */
function isTimezone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en-US", { timeZone: name }).format();
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
