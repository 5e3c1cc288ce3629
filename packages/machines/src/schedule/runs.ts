/** When a schedule is due, by its cron expression and time zone. The only file that knows the library for that. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { DEFAULT_TIMEZONE, isScheduleWord } from "@hibernaut/domain/schedule";
import { Cron } from "croner";

/** A machine's schedule in one form. */
export interface Schedule {
  /** Five fields. */
  cron: string;
  /** A name of the IANA database. */
  timezone: string;
}

/** Later days do not exist in every month. */
const LAST_DAY_OF_EVERY_MONTH = 28;

/** Parsed schedules that are kept. More only cost the time to parse one again, about 0.1 ms. */
const MAX_PARSED = 1000;

interface Parsed {
  cron: Cron;
  /** The last answer: the first run after `after`, and so after any time in between. Milliseconds since 1970. */
  after: number;
  next: number;
}

const parsed = new Map<string, Parsed>();

/** Returns the schedule of a machine; undefined without one. The words of Fly count from the machine's creation. */
export function scheduleOf(config: MachineConfig, createdAt: Date): Schedule | undefined {
  const { schedule, schedule_timezone: timezone = DEFAULT_TIMEZONE } = config;
  if (schedule === undefined) return undefined;
  return { cron: isScheduleWord(schedule) ? cronOfWord(schedule, localTime(createdAt, timezone)) : schedule, timezone };
}

/** Returns the first time after `after`, which is never included; undefined when there is none. */
export function nextRun({ cron, timezone }: Schedule, after: Date): Date | undefined {
  const known = parse({ cron, timezone });
  const time = after.getTime();
  if (time < known.after || time >= known.next) {
    known.next = known.cron.nextRun(after)?.getTime() ?? Number.POSITIVE_INFINITY;
    known.after = time;
  }
  return Number.isFinite(known.next) ? new Date(known.next) : undefined;
}

/** Returns the last time that is not after `until`; undefined when there is none. */
export function lastRun(schedule: Schedule, until: Date): Date | undefined {
  const justAfter = new Date(until.getTime() + 1);
  return parse(schedule).cron.previousRuns(1, justAfter)[0];
}

function parse({ cron, timezone }: Schedule): Parsed {
  const key = `${timezone} ${cron}`;
  const known = parsed.get(key);
  if (known !== undefined) return known;
  if (parsed.size >= MAX_PARSED) parsed.clear();
  // Without a function, it starts no timer of its own.
  const fresh = { cron: new Cron(cron, { timezone, mode: "5-part" }), after: 0, next: 0 };
  parsed.set(key, fresh);
  return fresh;
}

function cronOfWord(word: "hourly" | "daily" | "weekly" | "monthly", at: LocalTime): string {
  switch (word) {
    case "hourly":
      return `${at.minute} * * * *`;
    case "daily":
      return `${at.minute} ${at.hour} * * *`;
    case "weekly":
      return `${at.minute} ${at.hour} * * ${at.weekday}`;
    case "monthly":
      return `${at.minute} ${at.hour} ${Math.min(at.day, LAST_DAY_OF_EVERY_MONTH)} * *`;
  }
}

interface LocalTime {
  minute: number;
  hour: number;
  day: number;
  /** `Mon` */
  weekday: string;
}

function localTime(at: Date, timeZone: string): LocalTime {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    minute: "numeric",
    hour: "numeric",
    day: "numeric",
    weekday: "short",
  });
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const number = (name: "minute" | "hour" | "day") => Number(parts.get(name));
  return { minute: number("minute"), hour: number("hour"), day: number("day"), weekday: parts.get("weekday") ?? "" };
}
