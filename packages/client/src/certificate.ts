/** What a platform is shown that asks clients for a certificate. */
export interface ClientCertificate {
  /** PEM, with the authorities between it and the one that the platform knows, if there are any. */
  cert: string;
  /** PEM, without a passphrase. */
  key: string;
}
