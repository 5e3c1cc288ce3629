/** Fingerprints of snapshot files. */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";

const PAGE = 4096;
/**
 * Pages of a sampled fingerprint. Reading all of a 256 MB memory would cost as much as the rest of
 * a resume; 256 pages cost a millisecond and find a file that was replaced, cut, or rewritten.
 * They do not find a single flipped bit: the file system below is trusted for that.
 */
const SAMPLES = 256;
/** Of them, so many are asked for together: whoever else wants something of the disk, or a turn, does not wait for all. */
const READS_AT_ONCE = 2;

interface Fingerprint {
  size: number;
  /** SHA-256 in hex. */
  sha256: string;
}

/** Size and hash of a file: `whole`, or `sampled` at evenly spaced pages, the first and last included. */
export async function fingerprint(path: string, kind: "whole" | "sampled"): Promise<Fingerprint> {
  const file = await open(path, "r");
  try {
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
  } finally {
    await file.close();
  }
}
