/** Secrets of apps: environment variables that are encrypted at rest and never shown. */

/** A secret without its value. */
export interface SecretSummary {
  name: string;
  /** 16 hex digits, the same for equal values. Reveals nothing about the value without the key. */
  digest: string;
  /** RFC 3339. */
  updatedAt: string;
}

/**
 * The secrets of all apps. Calls throw a HibernautError: `failed_precondition` when a value is needed and the key that
 * it was encrypted with is missing or wrong.
 */
export interface Secrets {
  /** Lists an app's secrets, sorted by name. */
  list(app: string): SecretSummary[];
  /** Returns the names whose value would change. Throws `invalid_argument` for values that {@link set} would refuse. */
  changed(app: string, values: Record<string, string>): string[];
  /** Sets all of the values, or none when it throws. */
  set(app: string, values: Record<string, string>): void;
  /** Removes a secret. False when the app has no such secret. */
  unset(app: string, name: string): boolean;
  /** Returns names and values, as the app gets them. */
  environment(app: string): Record<string, string>;
  /** Returns a word that changes with every change of the app's secrets. Empty when it has none. */
  version(app: string): string;
}

/** A value that only the platform's key decrypts, and only under the name that it was encrypted for. */
export interface Sealed {
  /** Ends with the authentication tag. */
  ciphertext: Uint8Array;
  nonce: Uint8Array;
}

/**
 * Encrypts what the platform itself must be able to read, with the key of the apps' secrets. Calls throw a HibernautError:
 * `failed_precondition` when the key is missing or wrong.
 */
export interface Vault {
  /** Encrypts a value. The key is made if there is none, and proven on what is stored. */
  seal(name: string, value: string): Sealed;
  /** Decrypts a value. */
  unseal(name: string, sealed: Sealed): string;
}

/** Encrypts a value under a name. Throws as {@link Vault.seal} does. */
export function sealText(vault: Pick<Vault, "seal">, name: string, value: string): string {
  const { nonce, ciphertext } = vault.seal(name, value);
  return [nonce, ciphertext].map((part) => Buffer.from(part).toString("base64")).join(".");
}

/** Decrypts what {@link sealText} made under the same name. Throws as {@link Vault.unseal} does. */
export function unsealText(vault: Pick<Vault, "unseal">, name: string, sealed: string): string {
  const [nonce = "", ciphertext = ""] = sealed.split(".");
  return vault.unseal(name, { nonce: Buffer.from(nonce, "base64"), ciphertext: Buffer.from(ciphertext, "base64") });
}

/** The name under which headers are encrypted that are added to requests of an app's machines. */
export function addedHeadersOf(app: string): string {
  return `added headers of ${app}`;
}
