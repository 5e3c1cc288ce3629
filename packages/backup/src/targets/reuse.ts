/** Which stored piece is what is on the disk now. Pure. */
import type { ContentSum, StoredPiece } from "./manifest.ts";

/** What is known of a piece that never changes, among those of earlier sets. */
export interface Reuse {
  /** The stored piece with the same content. Undefined when it has to be stored. */
  same: StoredPiece | undefined;
  /**
   * Whether an earlier set has another content of the same files, which nobody has written since: one of the two is damaged, and
   * nobody can know which.
   */
  changed: boolean;
}

/**
 * Compares what is on the disk with what earlier sets have under the same name, oldest first. Files that were written again, such
 * as those of an image that was pulled again, may be others. A piece of which no sum was stored is not known.
 */
export function reuseOf(now: ContentSum, earlier: readonly StoredPiece[]): Reuse {
  const known = earlier.filter(({ content }) => content !== undefined);
  return {
    same: known.findLast(({ content }) => content?.sha256 === now.sha256),
    changed: known.some(({ content }) => content?.sha256 !== now.sha256 && content?.modified === now.modified),
  };
}
