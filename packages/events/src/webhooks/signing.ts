/** Secrets of webhooks, and the signatures that they make (https://www.standardwebhooks.com). */
import { randomBytes } from "node:crypto";
import type { SealedSecret, WebhookRecord } from "@hibernaut/domain/webhook";
import type { Vault } from "@hibernaut/secrets";
import { Webhook } from "standardwebhooks";

/** As many bytes as the digest of the signature has. The standard asks for 24 to 64. */
const SECRET_BYTES = 32;

/** Makes a secret as receivers get it. */
export function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString("base64")}`;
}

/** Encrypts the secret of a webhook. */
export function sealSecret(vault: Vault, id: string, secret: string): SealedSecret {
  return vault.seal(`webhook ${id}`, secret);
}

/** Decrypts the secrets that sign at a moment, the present one first. Throws when the key is missing or wrong. */
export function signingSecrets(
  vault: Vault,
  { id, secret, formerSecret }: Pick<WebhookRecord, "id" | "secret" | "formerSecret">,
  now: number,
): string[] {
  const former = formerSecret !== null && Date.parse(formerSecret.until) > now ? [formerSecret] : [];
  return [secret, ...former].map((sealed) => vault.unseal(`webhook ${id}`, sealed));
}

/** Returns the headers that sign a message: one signature for each secret. */
export function signedHeaders(
  secrets: readonly string[],
  { messageId, body }: { messageId: string; body: string },
  now: number,
): Record<string, string> {
  const at = new Date(now);
  return {
    "webhook-id": messageId,
    "webhook-timestamp": String(Math.floor(now / 1000)),
    "webhook-signature": secrets.map((secret) => new Webhook(secret).sign(messageId, at, body)).join(" "),
  };
}
