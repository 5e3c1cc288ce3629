/** Compares the two clocks of the process. */
export interface Clocks {
  /** The time of day, which is set right after a resume. */
  wall(): number;
  /** A clock that counts only while the machine runs. */
  steady(): number;
}

export const CLOCKS: Clocks = { wall: () => Date.now(), steady: () => performance.now() };

/** Larger than the small corrections of time servers. */
const JUMP_MS = 1000;

/** Detects that the machine slept: the time of day moved on without the steady clock, or was set. */
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
