/**
 * Where a run of the tests keeps its temporary files: data directories of platforms with the memory of their machines,
 * databases, unpacked images. In memory where there is room, because a test waits for the disk at every flush, and a file
 * that is written there costs the kernel twice the work. Plain JavaScript for Node 18 and later.
 */
import { readFileSync, statfsSync } from "node:fs";
import { freemem, tmpdir } from "node:os";

const MEMORY = "/dev/shm";

/**
 * Memory that has to be free, in bytes. Three files of tests at a time keep up to 2 GB each there, forks of machines most of
 * all. The machines themselves and the compilers need as much again.
 */
export const ROOM_BYTES = 12 * 1024 ** 3;

/**
 * Returns whether a run's files may be in memory. A user who sets TMPDIR has chosen a place. Programs are started there,
 * which `noexec` forbids: Docker has that, and 64 MB.
 *
 * @param {{chosen: string | undefined, mounts: string, roomBytes: number, freeBytes: number}} host `chosen` is TMPDIR, `mounts`
 *   the text of /proc/self/mounts, `roomBytes` what the file system in memory has left, `freeBytes` what the host has
 * @returns {boolean}
 */
export function fitsInMemory({ chosen, mounts, roomBytes, freeBytes }) {
  const [, options = "noexec"] = new RegExp(`^\\S+ ${MEMORY} tmpfs (\\S+)`, "m").exec(mounts) ?? [];
  const forbidden = options.split(",").some((option) => option === "noexec" || option === "ro");
  return chosen === undefined && !forbidden && Math.min(roomBytes, freeBytes) >= ROOM_BYTES;
}

/** Returns the directory for the files of a run: in memory if it wants that and the host has room. @param {boolean} wanted */
export function placeForFiles(wanted) {
  if (!wanted) return tmpdir();
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    const mounts = readFileSync("/proc/self/mounts", "utf8");
    const host = { chosen: process.env.TMPDIR, mounts, roomBytes: bavail * bsize, freeBytes: freemem() };
    return fitsInMemory(host) ? MEMORY : tmpdir();
  } catch {
    return tmpdir(); // this host has no such file system
  }
}
