/** `[backup]`: what the machines do before a backup, and what a drill counts. Fly's app files do not have it. */
import type { BackupConfig } from "@hibernaut/client";
import { BACKUP_COMMAND_S, MOST_BACKUP_COUNTS } from "@hibernaut/domain/limits";
import { splitWords } from "@hibernaut/lib/words";
import { given } from "../option-values.ts";
import type { Groups } from "./groups.ts";
import type { Backup } from "./model.ts";
import type { Section } from "./section.ts";

const NAME = /^[a-z0-9][a-z0-9_-]{0,31}$/;
const LEAST = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

/** `[backup]` and `[[backup]]`, each for some groups. */
export function readBackups(top: Section, groups: Groups): Backup[] {
  return top.sections("backup").map((section) => {
    const inGroups = groups.of(section);
    const command = readCommand(section);
    const seconds = section.seconds("timeout", "s", BACKUP_COMMAND_S.maximum);
    const counts = section.sections("counts").flatMap(readCount);
    if (counts.length > MOST_BACKUP_COUNTS)
      section.error("counts", `There are ${counts.length} counts; the maximum is ${MOST_BACKUP_COUNTS}.`);
    section.finish();
    const timeout = seconds === undefined ? undefined : Math.max(BACKUP_COMMAND_S.minimum, Math.ceil(seconds));
    return { groups: inGroups, config: given({ command, timeout, counts: counts.length > 0 ? counts : undefined }) };
  });
}

function readCount(section: Section): NonNullable<BackupConfig["counts"]> {
  const name = section.string("name") ?? "";
  const command = readCommand(section);
  const minimum = section.integer("minimum", LEAST);
  section.finish();
  if (!NAME.test(name)) section.error("name", 'Name what is counted in a-z, 0-9, _ and -, as in name = "orders".');
  if (command === undefined) section.error("command", "A count needs a `command` that prints one number.");
  return command === undefined ? [] : [{ name, command, ...given({ minimum }) }];
}

/** A text is split like in a shell, and not given to one. */
function readCommand(section: Section): string[] | undefined {
  const value = section.raw("command");
  if (value === undefined) return undefined;
  const words = typeof value === "string" ? splitWords(value) : section.strings("command");
  if (words !== undefined && words.length > 0) return words;
  if (typeof value === "string") section.error("command", "This command is empty, or has an unclosed quote.");
  return undefined;
}
