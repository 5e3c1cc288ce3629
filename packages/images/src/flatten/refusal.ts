/** Why an image is not made a root file system. The program says it on the last line of its standard error. */

/**
 * `bytes` and `entries`: it is larger than the limits. `disk`: the disk would be too full. `damaged`: it is not what it
 * should be. `pack`: the program that packs it failed. `missing`: there is no such program.
 */
export type RefusalKind = "bytes" | "entries" | "disk" | "damaged" | "pack" | "missing";

export class Refusal extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, reason: string) {
    super(reason);
    this.kind = kind;
  }
}

export function damaged(reason: string): Refusal {
  return new Refusal("damaged", reason);
}
