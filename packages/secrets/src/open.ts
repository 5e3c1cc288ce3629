/** The secrets, kept in the store and encrypted with a key from a file. */
import { createHash } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import { wipe, wiping } from "@hibernaut/lib/wipe";
import type { SecretRecord, SecretStore } from "@hibernaut/store";
import { digestOf, seal, sizeOf, unseal } from "./cipher.ts";
import type { Secrets, Vault } from "./contract.ts";
import { makeKey, REPAIR, readKey } from "./key.ts";
import { checkSecrets, checkTotal } from "./rules.ts";

/** Where secrets and their key are kept. */
interface SecretsOptions {
  store: SecretStore;
  /** `<dataDir>/secrets.key`, made with the first secret. Read at every use, so that a restored key works at once. */
  keyFile: string;
}

/**
 * Opens the secrets.
 *
 * @example
 * const secrets = openSecrets({ store: store.secrets, keyFile: join(settings.dataDir, "secrets.key") });
 */
export function openSecrets({ store, keyFile }: SecretsOptions): Secrets {
  const valueOf = (key: Buffer, record: SecretRecord) => decrypted(keyFile, key, record);
  const provenKey = () => proven({ store, keyFile });
  const changed = (app: string, values: Record<string, string>): string[] => {
    checkSecrets(values);
    const present = store.list(app);
    const sizes = Object.entries(values).map(([name, value]): [string, number] => [name, Buffer.byteLength(value)]);
    checkTotal(new Map([...present.map((record): [string, number] => [record.name, sizeOf(record)]), ...sizes]));
    const digests = new Map(present.map(({ name, digest }) => [name, digest]));
    return wiping(provenKey(), (key) =>
      Object.entries(values)
        .filter(([name, value]) => key === undefined || digests.get(name) !== digestOf(key, value))
        .map(([name]) => name),
    );
  };

  return {
    changed,
    list: (app) => store.list(app).map(({ name, digest, updatedAt }) => ({ name, digest, updatedAt })),
    set(app, values) {
      const names = changed(app, values);
      if (names.length === 0) return;
      const updatedAt = new Date().toISOString();
      const sealed = wiping(provenKey() ?? makeKey(keyFile), (key) =>
        names.map((name) => {
          const value = values[name] ?? "";
          return { app, name, ...seal(key, { app, name }, value), digest: digestOf(key, value), updatedAt };
        }),
      );
      store.set(sealed);
    },
    unset: (app, name) => store.remove(app, name),
    environment(app) {
      const records = store.list(app);
      if (records.length === 0) return {};
      return wiping(readKey(keyFile), (key) => {
        if (key === undefined) throw missing(keyFile);
        return Object.fromEntries(records.map((record) => [record.name, valueOf(key, record)]));
      });
    },
    version(app) {
      const lines = store.list(app).map(({ name, digest }) => `${name}=${digest}`);
      return lines.length === 0 ? "" : createHash("sha256").update(lines.join("\n")).digest("hex");
    },
  };
}

/**
 * Opens the vault.
 *
 * @example
 * const vault = openVault({ store: store.secrets, keyFile: join(settings.dataDir, "secrets.key") });
 */
export function openVault({ store, keyFile }: SecretsOptions): Vault {
  // No app has an empty name.
  const app = "";
  return {
    seal: (name, value) =>
      wiping(proven({ store, keyFile }) ?? makeKey(keyFile), (key) => seal(key, { app, name }, value)),
    unseal: (name, sealed) =>
      wiping(readKey(keyFile), (key) => {
        if (key === undefined) throw missing(keyFile);
        return decrypted(keyFile, key, { app, name, ...sealed });
      }),
  };
}

/**
 * Returns the key after decrypting a stored secret with it: a wrong key must not encrypt anything. Undefined while there
 * is neither a key nor a secret. The caller wipes it.
 */
function proven({ store, keyFile }: SecretsOptions): Buffer | undefined {
  const key = readKey(keyFile);
  try {
    const stored = store.any();
    if (stored === undefined) return key;
    if (key === undefined) throw missing(keyFile);
    decrypted(keyFile, key, stored);
    return key;
  } catch (error) {
    wipe(key);
    throw error;
  }
}

function decrypted(
  keyFile: string,
  key: Buffer,
  record: Pick<SecretRecord, "app" | "name" | "ciphertext" | "nonce">,
): string {
  try {
    return unseal(key, record, record);
  } catch {
    throw undecipherable(keyFile, record);
  }
}

function missing(keyFile: string): HibernautError {
  const what = `The key of the secrets, ${keyFile}, is missing, and stored secrets are encrypted with it.`;
  return new HibernautError("failed_precondition", `${what} ${REPAIR}`);
}

function undecipherable(keyFile: string, { app, name }: Pick<SecretRecord, "app" | "name">): HibernautError {
  const why = `${keyFile} is not the key it was encrypted with, or the database was changed.`;
  if (app === "") {
    const advice =
      "Put the key back from a backup. If it is lost, remove the webhook or the backup target and add it again.";
    return new HibernautError("failed_precondition", `The secret of ${name} cannot be decrypted: ${why} ${advice}`);
  }
  const what = `Secret ${name} of app ${app} cannot be decrypted: ${why}`;
  return new HibernautError("failed_precondition", `${what} ${REPAIR}`, { app_name: app, secret: name });
}
