/** Which mount points are at or below a directory. Pure; the text is that of proc_pid_mountinfo(5). */

/** What is mounted where a directory is. */
interface MountsOf {
  /** Whether the directory itself is a mount point. */
  itself: boolean;
  /** Absolute paths of the mount points below it. */
  below: string[];
}

/** The mount points among the lines of `mountinfo`. `path` is absolute and has no symbolic links. */
export function mountsOf(path: string, mountinfo: string): MountsOf {
  const points = mountinfo.split("\n").map((line) => unescaped(line.split(" ")[4] ?? ""));
  return {
    itself: points.includes(path),
    below: [...new Set(points.filter((point) => point.startsWith(`${path}/`)))],
  };
}

/** The kernel writes spaces, tabs, newlines and backslashes as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCodePoint(Number.parseInt(octal, 8)));
}
