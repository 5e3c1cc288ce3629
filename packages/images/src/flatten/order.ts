/** What the platform and the program that makes root file systems tell each other. */
import type { LayerFile, Limits } from "./layer.ts";

/** What the platform asks for, as the program's argument. */
export interface FlattenOrder {
  layers: LayerFile[];
  limits: Limits;
  /** How many bytes of the disk must stay free. */
  reserveBytes: number;
  /** The program that packs, and its options before the file. */
  pack: [program: string, ...options: string[]];
  /** The file to write; it exists. */
  out: string;
}

/** The exit code when the last line of standard error is a refusal as JSON. */
export const REFUSED = 3;
/** Said on standard output when the layers have been looked at, and packing begins. */
export const PACKING = "pack";
