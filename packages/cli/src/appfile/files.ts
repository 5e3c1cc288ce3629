/** `[[files]]`: files that are written into the machines before the app starts. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { filePathRefusal } from "@hibernaut/domain/guest-paths";
import { BASE64 } from "@hibernaut/lib/base64";
import { CliError } from "../failure.ts";
import { pathText } from "./findings.ts";
import type { Groups } from "./groups.ts";
import type { AppFile, FileEntry } from "./model.ts";
import type { Section } from "./section.ts";

/** Where the content of a file comes from. */
const SOURCES = ["local_path", "raw_value", "secret_name"] as const;

/** Reads the tables. Contents of local files are read by {@link withLocalFiles}. */
export function readFiles(top: Section, groups: Groups): FileEntry[] {
  const files: FileEntry[] = [];
  for (const section of top.sections("files")) files.push(...readFile(section, groups, files));
  return files;
}

function readFile(section: Section, groups: Groups, before: readonly FileEntry[]): FileEntry[] {
  if (section.keys.length === 0) return [];
  const guestPath = section.string("guest_path");
  const inGroups = groups.of(section);
  const local = section.string("local_path");
  const raw = section.string("raw_value");
  const secret = section.string("secret_name");
  section.finish();
  if (guestPath === undefined || !guestPath.startsWith("/") || guestPath.endsWith("/")) {
    section.error("guest_path", 'Use the absolute path of a file, as in guest_path = "/etc/app.conf".');
    return [];
  }
  const sameMachines = before.filter((file) => file.groups.some((name) => inGroups.includes(name)));
  const refusal = filePathRefusal(
    guestPath,
    sameMachines.map((file) => file.guestPath),
  );
  if (refusal !== undefined) section.error("guest_path", refusal);
  if (raw !== undefined && !BASE64.test(raw.replaceAll(/[\r\n]/g, "")))
    section.error("raw_value", "Use base64, as `base64 < file` prints it.");
  section.requireFile("local_path", local);
  const given = SOURCES.filter((key) => section.has(key));
  const content =
    local !== undefined ? { local } : raw !== undefined ? { raw } : secret !== undefined ? { secret } : undefined;
  if (given.length > 1 || content === undefined) {
    const what = given.length === 0 ? "The file has no content." : `The file has ${given.join(" and ")}.`;
    section.findings.error(section.path, `${what} Use one of ${SOURCES.join(", ")}.`);
    return [];
  }
  return [{ groups: inGroups, guestPath, content, at: pathText(section.path) }];
}

/**
 * The app file with the contents of its local files, whose paths are relative to the app file. Throws `not_found` for
 * one that cannot be read.
 */
export function withLocalFiles(file: AppFile, appFile: string): AppFile {
  const files = file.files.map((entry) =>
    "local" in entry.content
      ? { ...entry, content: { raw: localContent(entry, entry.content.local, appFile) } }
      : entry,
  );
  return { ...file, files };
}

function localContent({ at }: FileEntry, local: string, appFile: string): string {
  const path = resolve(dirname(appFile), local);
  try {
    return readFileSync(path).toString("base64");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new CliError(
      "not_found",
      `${appFile}: ${at}.local_path: ${path} cannot be read (${code}). Paths are relative to the directory of the app file.`,
    );
  }
}
