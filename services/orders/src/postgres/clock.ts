/** How the two clocks of the process stand to each other. */
export interface Clocks {
  /** Of the calendar: set right after a resume. */
  wall(): number;
  /** Counts only while the machine runs. */
  steady(): number;
}

export const CLOCKS: Clocks = { wall: () => Date.now(), steady: () => performance.now() };

/** More than the small corrections that time servers make. */
const JUMP_MS = 1000;

/** Notices that the machine slept: the calendar moved on without the steady clock, or somebody set it. */
export class JumpWatch {
  readonly #clocks: Clocks;
  #apart: number;

  constructor(clocks: Clocks) {
    this.#clocks = clocks;
    this.#apart = clocks.wall() - clocks.steady();
  }

  /** Whether there was a jump since the last call. */
  jumped(): boolean {
    const apart = this.#clocks.wall() - this.#clocks.steady();
    const moved = Math.abs(apart - this.#apart);
    this.#apart = apart;
    return moved > JUMP_MS;
  }
}
