/** Process groups: their commands, and which parts of the file apply to which group. */

import { splitWords } from "@hibernaut/lib/words";
import type { Findings } from "./findings.ts";
import type { ProcessGroup } from "./model.ts";
import type { Path } from "./positions.ts";
import type { Section } from "./section.ts";

/** The group of a file that defines none. */
const DEFAULT_GROUP = "app";

/** The groups of one file. */
export class Groups {
  readonly list: readonly ProcessGroup[];

  constructor(list: readonly ProcessGroup[]) {
    this.list = list.length > 0 ? list : [{ name: DEFAULT_GROUP, command: undefined }];
  }

  /** The group that applies where none is named: `app`, or the first in alphabetical order. */
  get fallback(): string {
    return fallbackGroup(this.list);
  }

  /** The groups that a table's `processes` names; empty when it names none. */
  named(section: Section): string[] {
    const names = section.strings("processes") ?? [];
    const known = this.list.map(({ name }) => name);
    for (const name of names.filter((one) => !known.includes(one)))
      section.error(
        "processes",
        `Unknown process group \`${name}\`. The file defines ${known.join(", ")}. Add it to [processes], or name another.`,
      );
    return names;
  }

  /** Like `named`, with the fallback for a table that names none. */
  of(section: Section): string[] {
    const names = this.named(section);
    return names.length > 0 ? names : [this.fallback];
  }
}

/** The name of the group that applies where none is named. */
export function fallbackGroup(groups: readonly ProcessGroup[]): string {
  const names = groups.map(({ name }) => name);
  return names.includes(DEFAULT_GROUP) ? DEFAULT_GROUP : (names.toSorted()[0] ?? DEFAULT_GROUP);
}

/** Names that can be typed as they are: `hibernaut scale count web=2`. */
const GROUP_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$/;

function refuseName(findings: Findings, path: Path, name: string): void {
  if (!GROUP_NAME.test(name))
    findings.error(
      path,
      `"${name.slice(0, 60)}" is not a valid name for a process group. Use 1 to 63 letters, digits, - and _, with no - or _ at either end.`,
    );
}

/** `[processes]`, and the old `[[processes]]` with `name` and `command`. */
export function readGroups(top: Section): Groups {
  const raw = top.raw("processes");
  if (Array.isArray(raw)) return new Groups(top.sections("processes").flatMap(oldProcess));
  const section = top.section("processes");
  const names = section?.keys ?? [];
  for (const name of names) refuseName(top.findings, ["processes", name], name);
  return new Groups(names.map((name) => ({ name, command: command(section, name) })));
}

function oldProcess(section: Section): ProcessGroup[] {
  const name = section.string("name");
  const group = name === undefined ? [] : [{ name, command: command(section, "command") }];
  if (name === undefined && section.keys.length > 0)
    section.findings.error(
      section.path,
      'The process has no `name`. Write `[processes]` with one line per group: web = "..."',
    );
  if (name !== undefined) refuseName(section.findings, section.at("name"), name);
  section.finish();
  return group;
}

function command(section: Section | undefined, key: string): string[] | undefined {
  const text = section?.string(key);
  if (text === undefined || text.trim() === "") return undefined;
  return splitWords(text) ?? section?.error(key, "This command has an unclosed quote or a trailing backslash.");
}
