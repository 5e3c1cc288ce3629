import type { MachineConfig } from "@hibernaut/client";

/** A part of a configuration, at any depth; arrays as long as they are. */
type Part<T> = T extends readonly (infer U)[] ? Part<U>[] : T extends object ? { [K in keyof T]?: Part<T[K]> } : T;

/** What a file of `files/` must come to. */
export interface Expected {
  app?: string;
  /** Every process group, in order, with what its machines must have at least. */
  means: Record<string, Part<MachineConfig>>;
  /** What the machine of its release command must have at least; absent without one. */
  release?: Part<MachineConfig>;
  /** Exactly the paths that cause a warning, in the order of the file. */
  warns: string[];
}
