/** Keys of an app file for the fields of a configuration that hold one value. Some of them have forms of their own. */
import { constants } from "node:os";
import { type Field, type Fields, keysOf, withValueAt } from "@hibernaut/domain/fields";
import { KEEP_WARM_S } from "@hibernaut/domain/limits";
import type { Section } from "./section.ts";

/** The fields of a configuration that a table has, as far as they are right. */
export function readFields<T extends object>(section: Section, fields: Fields, before: T): T {
  let read = before;
  for (const [path, key, field] of keysOf(fields)) {
    const readOwn = OWN[key];
    const value = readOwn === undefined ? readField(section, key, field) : readOwn(section, key);
    if (value !== undefined) read = withValueAt(read, path, value);
  }
  return read;
}

function readField(section: Section, key: string, field: Field): unknown {
  switch (field.kind) {
    case "boolean":
      return section.boolean(key);
    case "choice":
      return section.choice(key, field.choices);
    case "text":
      return section.string(key);
    case "seconds":
      return readSeconds(section, key, field);
    case "mb":
      // None is what a machine without the key has.
      return section.integer(key, field) || undefined;
    default:
      return section.integer(key, field);
  }
}

/** In whole seconds, as the platform counts them. */
function readSeconds(section: Section, key: string, { minimum, maximum }: { minimum: number; maximum: number }) {
  const seconds = section.seconds(key, "s", maximum);
  if (seconds === undefined || seconds >= minimum) return seconds && Math.ceil(seconds);
  return seconds > 0 ? minimum : section.error(key, "Use at least one second.");
}

const OWN: Readonly<Record<string, (section: Section, key: string) => unknown>> = {
  /** `true` is the form from before suspend existed, and means stop. */
  auto_stop_machines(section, key) {
    const value = section.raw(key);
    if (typeof value === "boolean") return value ? "stop" : "off";
    return section.choice(key, ["suspend", "stop", "off"]);
  },
  /** Fly has no such key, so no old file has an empty one: it is a mistake here, and so is a part of a second. */
  keep_warm(section, key) {
    const seconds = section.seconds(key, "s", KEEP_WARM_S.maximum);
    if (section.raw(key) === "" || (seconds !== undefined && !Number.isInteger(seconds)))
      return section.error(key, 'Use whole seconds, as in "30s" or "5m", or 0 to keep nothing.');
    return seconds;
  },
  kill_signal(section, key) {
    const name = section.string(key);
    if (name === undefined || name === "" || Object.hasOwn(constants.signals, name)) return name || undefined;
    return section.error(key, `Unknown signal "${name}". Use one of signal(7), such as SIGTERM or SIGINT.`);
  },
};
