/** Remembers between which versions of QEMU a resume has failed, so that it is not tried with the next machine. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ifAbsent } from "@hibernaut/lib/absence";
import { replaceFile } from "@hibernaut/lib/durable";
import type { CarryOvers, FailedCarryOver } from "../contract.ts";

const FILE = "failed-carry-overs.json";
/** Only those to the version that is installed matter; the others are kept in case it comes back. */
const MOST_KEPT = 20;

/** The failed carry-overs of a data directory. */
export class FailedCarryOvers implements CarryOvers {
  readonly #file: string;
  #failed: readonly FailedCarryOver[];

  private constructor(file: string, failed: readonly FailedCarryOver[]) {
    this.#file = file;
    this.#failed = failed;
  }

  static async open(dataDir: string): Promise<FailedCarryOvers> {
    const file = join(dataDir, FILE);
    return new FailedCarryOvers(file, parse(await readFile(file, "utf8").catch(ifAbsent("[]"))));
  }

  /** Oldest first. */
  get all(): readonly FailedCarryOver[] {
    return this.#failed;
  }

  /** Counts at once for this platform, and for the next one when this resolves. Rejects when it cannot be written. */
  async failed(pair: FailedCarryOver): Promise<void> {
    if (this.#failed.some(({ from, to }) => from === pair.from && to === pair.to)) return;
    this.#failed = [...this.#failed, pair].slice(-MOST_KEPT);
    await replaceFile(this.#file, `${JSON.stringify(this.#failed, null, 2)}\n`, { mode: 0o600 });
  }
}

/** A file that cannot be understood counts as empty: at worst, one more resume is tried and fails. */
function parse(text: string): FailedCarryOver[] {
  try {
    const list = JSON.parse(text) as unknown;
    return Array.isArray(list) ? list.filter(isPair) : [];
  } catch {
    return [];
  }
}

function isPair(value: unknown): value is FailedCarryOver {
  const { from, to } = (value ?? {}) as Partial<FailedCarryOver>;
  return typeof from === "string" && typeof to === "string";
}
