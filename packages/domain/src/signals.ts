/** Signals by name, as the host's system numbers them. Pure. */
import { constants } from "node:os";
import { HibernautError } from "./errors.ts";

/** Longer than the name of any signal, in characters. */
export const SIGNAL_MAX_LENGTH = 16;

/** Returns the number of a signal such as `SIGUSR1`. Throws `invalid_argument`, with the field, for what is not one. */
export function signalNumber(name: string, field: string): number {
  const numbers: Readonly<Record<string, number>> = constants.signals;
  const number = Object.hasOwn(numbers, name) ? numbers[name] : undefined;
  if (number !== undefined) return number;
  const message = `${name} is not a valid signal. Use one of signal(7), such as SIGTERM, SIGINT or SIGUSR1.`;
  throw new HibernautError("invalid_argument", message, { field });
}
