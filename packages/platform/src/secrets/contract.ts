/** What the platform keeps for apps and shows to nobody: environment variables, encrypted at rest. */

/** A secret without its value. */
export interface SecretSummary {
  name: string;
  /** 16 hex digits: equal for equal values, and worth nothing to who has no key. */
  digest: string;
  /** RFC 3339. */
  updatedAt: string;
}

/**
 * The secrets of all apps. Every call throws a HibernautError; `failed_precondition` where the key that they were
 * encrypted with is needed and is not there. What needs no value needs no key.
 */
export interface Secrets {
  /** By name. */
  list(app: string): SecretSummary[];
  /** Names whose value would be a new one. Throws `invalid_argument` for what {@link set} would refuse. */
  changed(app: string, values: Record<string, string>): string[];
  /** Sets all of them or none. */
  set(app: string, values: Record<string, string>): void;
  /** False when the app has no such secret. */
  unset(app: string, name: string): boolean;
  /** Names and values, as the app gets them. */
  environment(app: string): Record<string, string>;
  /** A word for what the app's secrets are now: another one after every change; empty without secrets. */
  version(app: string): string;
}
