/** Commands that run inside a machine in addition to its app. */
import type { CommandSpec, GuestCommand } from "@hibernaut/guest";
import type { ControllerSet } from "../controller-set.ts";
import type { LiveGuest } from "../guest.ts";
import { requireCommand } from "../run-command.ts";

/** Runs commands in machines. */
export class Commands {
  readonly #controllers: ControllerSet;

  constructor(controllers: ControllerSet) {
    this.#controllers = controllers;
  }

  /** Runs a command in a running machine. Throws `failed_precondition` in any other state. */
  run(app: string, id: string, spec: CommandSpec): GuestCommand {
    return this.require(app, id, spec).agent.streams.run(spec);
  }

  /** Throws what {@link run} would throw, and runs nothing. */
  require(app: string, id: string, spec: CommandSpec): LiveGuest {
    return requireCommand(this.#controllers.find(app, id).commanded, spec);
  }

  /** Returns how many commands keep the machine with exactly this id awake. */
  count(id: string): number {
    return this.#controllers.get(id)?.inside.streams.commands ?? 0;
  }
}
