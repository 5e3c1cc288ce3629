/** What can go wrong between us and a registry. `explain` (failures.ts) makes sentences of these. */

type FaultKind =
  /** It may work in a moment: connection cut, 429, 5xx. */
  | "transient"
  /** It will not work by itself: wrong certificate, an answer that no registry gives. */
  | "unreachable"
  /** 401 or 403 without a login. */
  | "denied"
  /** The login that was shown is not accepted. */
  | "login"
  | "missing"
  /** The content is not what its digest, its size or the specification say. */
  | "invalid";

/** A failed request to a registry. `message` is a reason that fits behind a colon. */
export class RegistryFault extends Error {
  override name = "RegistryFault";
  readonly kind: FaultKind;
  /** How long the registry asked us to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(kind: FaultKind, reason: string, options: ErrorOptions & { retryAfterMs?: number | undefined } = {}) {
    super(reason, options);
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Whether trying again may help. */
export function isTransient(error: unknown): error is RegistryFault {
  return error instanceof RegistryFault && error.kind === "transient";
}
