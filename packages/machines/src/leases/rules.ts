/** Whom a lease keeps from changing a machine. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import { LEASE_NONCE_HEADER, liveLease, type MachineLease } from "@hibernaut/domain/lease";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isNonceOf } from "./nonce.ts";

type Leased = Pick<MachineRecord, "id" | "app" | "state" | "lease">;

/** Throws `lease_held` while a client with another nonce, or with any if there is none, has a lease on the machine. */
export function requireUnheld(machine: Leased, nonce: string | undefined, now: Date): void {
  const lease = leaseOf(machine, now);
  if (lease !== null && (nonce === undefined || !isNonceOf(nonce, lease))) throw held(machine, lease);
}

/**
 * The same, and throws `failed_precondition` for a nonce whose lease has ended: who believes to be alone with the machine is
 * not.
 */
export function requirePassage(machine: Leased, nonce: string | undefined, now: Date): void {
  requireUnheld(machine, nonce, now);
  const isOver = nonce !== undefined && leaseOf(machine, now) === null;
  if (isOver && machine.state !== "destroyed") throw ended(machine);
}

/** Returns the lease that lives. Throws `not_found` when there is none. */
export function requireLease({ id, app, lease }: Leased, now: Date): MachineLease {
  const live = liveLease(lease, now);
  if (live !== null) return live;
  const message = `lease not found: nobody has a lease on machine ${id} now. Take one with \`hibernaut machine lease take ${id} --app ${app}\`.`;
  throw new HibernautError("not_found", message, { machine_id: id });
}

/** Nobody changes a machine that is gone. */
function leaseOf({ state, lease }: Leased, now: Date): MachineLease | null {
  return state === "destroyed" ? null : liveLease(lease, now);
}

function held({ id, app }: Leased, { owner, description, expiresAt }: MachineLease): HibernautError {
  const what = description === "" ? "" : ` (${description})`;
  const message = `Token ${owner} has a lease on machine ${id} until ${expiresAt}${what}, so nobody else changes it. Wait until it ends, send its nonce as \`${LEASE_NONCE_HEADER}\`, or, if its client is gone, end it: \`hibernaut machine lease clear ${id} --app ${app}\`.`;
  return new HibernautError("lease_held", message, { machine_id: id, owner, description, expires_at: expiresAt });
}

function ended({ id }: Leased): HibernautError {
  const message = `The lease on machine ${id} that this nonce belonged to has ended, so others may have changed the machine. Look at it, and take a new lease, or leave \`${LEASE_NONCE_HEADER}\` out.`;
  return new HibernautError("failed_precondition", message, { machine_id: id });
}
