/**
 * What may be true of a sandbox, after what was acknowledged, what failed, and what was killed. Pure: each function returns
 * what is believed from then on, or throws {@link Contradiction} for what cannot be.
 */

/** Of a file. Null: there is none. */
export type Content = string | null;

export interface FileBelief {
  /** One of these is in it, as long as its virtual machine lives. */
  now: ReadonlySet<Content>;
  /** One of these, once its virtual machine was killed: what was flushed last, and everything since. */
  afterLoss: ReadonlySet<Content>;
}

/** A number in the memory of a program. */
export interface CountBelief {
  least: number;
  most: number;
}

/** Something that was acknowledged, and is not there. */
export class Contradiction extends Error {
  override name = "Contradiction";
}

export function fileOf(content: Content): FileBelief {
  return { now: new Set([content]), afterLoss: new Set([content]) };
}

/** After a write that was acknowledged. It is in the guest, whose cache need not be on its disk. */
export function wrote({ afterLoss }: FileBelief, content: Content): FileBelief {
  return { now: new Set([content]), afterLoss: new Set([...afterLoss, content]) };
}

/** After a write that failed: all of it happened, or nothing. */
export function mayHaveWritten({ now, afterLoss }: FileBelief, ...contents: Content[]): FileBelief {
  return { now: new Set([...now, ...contents]), afterLoss: new Set([...afterLoss, ...contents]) };
}

/** After a `sync`, a pause or a fork. */
export function flushed({ now }: FileBelief): FileBelief {
  return { now, afterLoss: now };
}

/** When its virtual machine was killed. */
export function lost({ afterLoss }: FileBelief): FileBelief {
  return { now: afterLoss, afterLoss };
}

/** When it may have been killed, and nobody has looked yet. */
export function mayBeLost({ now, afterLoss }: FileBelief): FileBelief {
  return { now: new Set([...now, ...afterLoss]), afterLoss };
}

export function found({ now, afterLoss }: FileBelief, content: Content): FileBelief {
  if (!now.has(content)) throw new Contradiction(`it has ${told(content)}, and not ${[...now].map(told).join(" or ")}`);
  return { now: new Set([content]), afterLoss };
}

/** What a file may have in which a program counts, after one more. */
export function next(contents: ReadonlySet<Content>): Content[] {
  return [...contents].map((content) => String(Number(content ?? 0) + 1));
}

/** When a line was sent to a program that counts lines. */
export function sent({ least, most }: CountBelief): CountBelief {
  return { least, most: most + 1 };
}

/** When the line was acknowledged. */
export function taken({ least, most }: CountBelief): CountBelief {
  return { least: least + 1, most };
}

export function counted({ least, most }: CountBelief, number: number): CountBelief {
  if (number < least || number > most) throw new Contradiction(`it counted ${number}, and not ${least} to ${most}`);
  return { least: number, most: number };
}

/** The beginning of it, and how long it is. */
function told(content: Content): string {
  return content === null ? "nothing" : `"${content.slice(0, 24)}" (${content.length})`;
}
