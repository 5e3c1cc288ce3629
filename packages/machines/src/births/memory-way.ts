/** How a machine gets the memory that it is born with. Pure. */

/**
 * `share`: it begins with the same file as others, and gets one of its own when it is suspended for the first time. `clone`: a file
 * of its own, which shares its blocks with the other one. `copy`: a file of its own.
 */
type MemoryWay = "share" | "clone" | "copy";

/** What the host can do. */
interface MemoryMeans {
  /** The hypervisor lets guests begin with a file that nobody writes to. */
  borrows: boolean;
  /** The file system clones files. */
  clones: boolean;
}

/**
 * The best way that there is. Shared memory comes first on any file system: clones share blocks of the disk, but each takes the
 * host's memory for itself.
 */
export function wayOfMemory({ borrows, clones }: MemoryMeans): MemoryWay {
  if (borrows) return "share";
  return clones ? "clone" : "copy";
}
