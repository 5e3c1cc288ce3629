/** When machines are started: `[[schedule]]`, which Fly's app files do not have. */
import { scheduleRefusal } from "@hibernaut/domain/schedule";
import type { Groups } from "./groups.ts";
import type { Schedule } from "./model.ts";
import type { Section } from "./section.ts";

/** `[[schedule]]` and `[schedule]`. A value that the platform would refuse is reported where it is written. */
export function readSchedules(top: Section, groups: Groups): Schedule[] {
  return top.sections("schedule").flatMap((section) => {
    const schedule = readSchedule(section, groups.of(section));
    section.finish();
    return schedule;
  });
}

function readSchedule(section: Section, groups: string[]): Schedule[] {
  const when = section.string("when");
  const timezone = section.string("timezone");
  if (when === undefined) {
    if (!section.has("when"))
      section.findings.error(section.path, 'The schedule has no `when`. Add one, as in when = "0 3 * * *".');
    return [];
  }
  const refusal = scheduleRefusal({ schedule: when, schedule_timezone: timezone });
  if (refusal !== undefined) section.error(refusal.key === "schedule" ? "when" : "timezone", refusal.message);
  return [{ groups, when, timezone }];
}
