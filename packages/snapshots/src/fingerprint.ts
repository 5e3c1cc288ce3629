/** Fingerprints of snapshot files. */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { PAGE } from "@hibernaut/lib/page-ranges";

/**
 * Pages of a sampled fingerprint. Reading all of a 256 MB memory would take as long as the rest of a resume. 256 pages
 * take a millisecond, and detect a file that was replaced, truncated or rewritten. They do not detect a single flipped
 * bit, which is left to the file system.
 */
const SAMPLES = 256;
/** Pages read at a time: few, so that other readers of the disk do not wait for all samples. */
const READS_AT_ONCE = 2;

interface Fingerprint {
  /** Bytes. */
  size: number;
  /** SHA-256, in hex. */
  sha256: string;
}

/** Returns size and hash of a file: of the `whole` file, or `sampled` at evenly spaced pages from the first to the last. */
export async function fingerprint(path: string, kind: "whole" | "sampled"): Promise<Fingerprint> {
  await using file = await open(path, "r");
  const { size } = await file.stat();
  const pages = Math.ceil(size / PAGE);
  const hash = createHash("sha256");
  if (kind === "whole" || pages <= SAMPLES) {
    hash.update(await file.readFile());
  } else {
    const sample = Buffer.alloc(SAMPLES * PAGE);
    const read = (index: number) =>
      file.read(sample, index * PAGE, PAGE, Math.round((index * (pages - 1)) / (SAMPLES - 1)) * PAGE);
    for (let first = 0; first < SAMPLES; first += READS_AT_ONCE)
      await Promise.all(Array.from({ length: READS_AT_ONCE }, (_, more) => read(first + more)));
    hash.update(sample);
  }
  return { size, sha256: hash.digest("hex") };
}
