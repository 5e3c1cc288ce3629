/** Waiting for the machine of a sandbox. */
import { isHibernautError } from "@hibernaut/domain/errors";
import type { SandboxNeeds } from "../contract.ts";
import { Refusal } from "../failure.ts";

type Machines = Pick<SandboxNeeds["resources"]["machines"], "wait">;
type Wait = Parameters<Machines["wait"]>;

/**
 * Settles as the `wait` of machines does, but with 404 when the sandbox is killed meanwhile: it is gone, and clients of some
 * calls take 409 for an answer.
 */
export async function waitFor(machines: Machines, ...[app, id, targets, options]: Wait): ReturnType<Machines["wait"]> {
  try {
    return await machines.wait(app, id, targets, options);
  } catch (error) {
    throw isHibernautError(error, "failed_precondition") ? missing(id) : error;
  }
}

/** What a client is told of a sandbox that its app does not have. */
export function missing(id: string): Refusal {
  return new Refusal(404, `Sandbox '${id.slice(0, 80)}' was not found.`);
}
