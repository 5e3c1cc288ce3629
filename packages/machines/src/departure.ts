/** A machine that is being moved to another host: what is asked of it meanwhile waits, or is refused. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { Command } from "./decide/index.ts";

/** Whose the machine is when its move ended is not known. Until it is, nothing starts it here. */
export class MoveUnsettled extends HibernautError {
  override name = "MoveUnsettled";
}

export class Departure {
  readonly #id: string;
  readonly #to: string;
  #wanted = false;

  /** `to` is the host that the machine goes to. */
  constructor(id: string, to: string) {
    this.#id = id;
    this.#to = to;
  }

  /** Whether something asked for a start. The host that has the machine in the end starts it. */
  get wanted(): boolean {
    return this.#wanted;
  }

  /** Takes a command in the machine's place: a start waits, and everything else is refused with `aborted`. */
  command({ type }: Command): void {
    if (type !== "start") this.refuse();
    this.#wanted = true;
  }

  /** Throws `aborted`. */
  refuse(): never {
    const message = `Machine ${this.#id} is being moved to host ${this.#to}; wait until that is done and try again.`;
    throw new HibernautError("aborted", message, { machine_id: this.#id, host: this.#to });
  }
}
