/** Commands that restore what is at a target, for a shell. Pure. */
import type { BackupSet, BackupTarget } from "@hibernaut/client/browser";

/** What no shell takes for more than a part of a word. */
const PLAIN = /^[A-Za-z0-9@%+=:,./_-]+$/;

/** Returns a text as one word of a command. What is in backups was written by others, and could end the command otherwise. */
export function shellWord(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Returns the apps of a set without those that no platform would have named so, and that a command could take for an option. */
export function restorableApps({ apps }: Pick<BackupSet, "apps">): string[] {
  return apps.filter((app) => PLAIN.test(app) && !app.startsWith("-"));
}

/** The longest ending that a copy's name gets. */
const COPY = "-restored";
/** As names of apps are part of hostnames. */
const MOST_OF_NAME = 63;

/** Returns the command that restores an app next to itself, or in its own place. */
export function appCommand(
  { target, set }: { target: string; set: string },
  app: string,
  way: "copy" | "in place",
): string {
  const as = `${app.slice(0, MOST_OF_NAME - COPY.length)}${COPY}`;
  const how = way === "copy" ? `--as ${shellWord(as)}` : "--in-place";
  return `hibernaut backup restore --app ${shellWord(app)} --target ${shellWord(target)} --set ${shellWord(set)} ${how}`;
}

/** Returns the command that restores everything on a host without a platform. */
export function platformCommand({ url, kind }: Pick<BackupTarget, "url" | "kind">, set: string): string {
  const ssh = kind === "sftp" ? " --ssh-key id_backup" : "";
  return `hibernaut backup restore ${shellWord(url)} --set ${shellWord(set)}${ssh} --key-file key.txt --data /srv/hibernaut`;
}
