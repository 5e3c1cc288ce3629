/** Settings of the certificates that the platform gets by itself. */
import { choice, duration, list, optionalPath, optionalText, text } from "./forms.ts";

export const CERTIFICATE_SETTINGS = {
  acmeDirectory: text("HIBERNAUT_ACME_DIRECTORY", {
    default: "letsencrypt",
    pattern: "^(letsencrypt|letsencrypt-staging|https://[^\\s]+)$",
    accepts: "letsencrypt, letsencrypt-staging, or the https address of an ACME directory",
    description:
      "The authority that [certificates](https.md) come from. Certificates of another one are replaced once you have agreed to the new authority's terms.",
  }),
  acmeEmail: optionalText("HIBERNAUT_ACME_EMAIL", {
    pattern: "^[^@\\s]+@[^@\\s]+$",
    accepts: "an email address",
    description: "Where the authority may write to about your certificates. It may require one.",
  }),
  acmeChallenge: choice("HIBERNAUT_ACME_CHALLENGE", ["http-01", "tls-alpn-01"], {
    default: "http-01",
    description:
      "How the authority [verifies hostnames](https.md#where-port-80-cannot-be-reached): `http-01` at port 80, `tls-alpn-01` at port 443.",
  }),
  acmeCaFile: optionalPath("HIBERNAUT_ACME_CA_FILE", {
    description:
      "A file with the root certificate, in PEM, that the connection to a private authority is verified with. Without it, those that Node trusts.",
  }),
  acmeDnsHook: optionalPath("HIBERNAUT_ACME_DNS_HOOK", {
    description:
      "The program that adds and removes TXT records, for [wildcard certificates](https.md#get-a-wildcard-certificate).",
  }),
  acmeDnsHookTimeoutMs: duration("HIBERNAUT_ACME_DNS_HOOK_TIMEOUT", {
    default: 120_000,
    min: 1000,
    max: 3_600_000,
    description:
      "How long one call of that program may take to add a record. Most of it is the wait until all name servers have the record.",
  }),
  publicAddresses: list("HIBERNAUT_PUBLIC_ADDRESSES", {
    default: [],
    item: /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F:]*:[0-9a-fA-F:.]*)$/,
    of: "addresses such as 203.0.113.7",
    description:
      "The addresses under which the internet reaches this host, for `hibernaut certs check`, which [asks no other private ones](https.md#check-what-is-missing). By default, the public ones of its interfaces; a host behind NAT has none.",
  }),
};
