/** The insides of sandboxes that requests have reached: what is under way in each is counted in one place. */
import type { SandboxNeeds } from "../contract.ts";
import type { SandboxView } from "../life/view.ts";
import { SandboxGuest } from "./guest.ts";

/** How many sandboxes are remembered, so that those that are gone do not add up. */
const MOST_GUESTS = 10_000;

export class Guests {
  readonly #commands: Pick<SandboxNeeds["resources"]["commands"], "run">;
  readonly #known = new Map<string, SandboxGuest>();

  constructor({ resources }: Pick<SandboxNeeds, "resources">) {
    this.#commands = resources.commands;
  }

  of({ record: { app, id, programs } }: SandboxView): SandboxGuest {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    if (this.#known.size > MOST_GUESTS) this.#known.clear(); // those of sandboxes that are gone; the others are made again
    const made = new SandboxGuest((spec) => this.#commands.run(app, id, spec), programs?.user);
    this.#known.set(id, made);
    return made;
  }
}
