/** The certificates of TLS-ALPN-01 challenges (RFC 8737): signed by themselves, with the answer in an extension. */
import { loadLibrary } from "./acme-library.ts";

/** Returns the certificate and its key, in PEM. `value` is what the account makes of the challenge's token. */
export async function challengeCertificate(hostname: string, value: string): Promise<string> {
  const { crypto } = await loadLibrary();
  // Of the authorization, the library takes only the name.
  const authorization = { identifier: { type: "dns", value: hostname } } as Parameters<
    typeof crypto.createAlpnCertificate
  >[0];
  const key = await crypto.createPrivateEcdsaKey();
  const [, certificate] = await crypto.createAlpnCertificate(authorization, value, key);
  return `${String(key)}\n${String(certificate)}`;
}
