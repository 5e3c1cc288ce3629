/** What can go wrong with a registry. `explain` in failures.ts turns it into errors for users. */

type FaultKind =
  /** Another attempt may work: the connection broke, 429, 5xx. */
  | "transient"
  /** Another attempt will not help: an invalid certificate, or an answer that is not a registry's. */
  | "unreachable"
  /** 401 or 403 to a request without a login. */
  | "denied"
  /** The login is not accepted. */
  | "login"
  | "missing"
  /** The content does not match its digest, its size or the specification. */
  | "invalid";

/** A request to a registry failed. `message` is a reason, in lowercase, to be put after a colon. */
export class RegistryFault extends Error {
  override name = "RegistryFault";
  readonly kind: FaultKind;
  /** How long the registry asks clients to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: FaultKind, reason: string, options: ErrorOptions & { retryAfterMs?: number | undefined } = {}) {
    super(reason, options);
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Whether another attempt may help. */
export function isTransient(error: unknown): error is RegistryFault {
  return error instanceof RegistryFault && error.kind === "transient";
}
