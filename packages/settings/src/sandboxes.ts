/** Settings of sandboxes. */
import { optionalListen, optionalPath, text } from "./forms.ts";

export const SANDBOX_SETTINGS = {
  sandboxListen: optionalListen("HIBERNAUT_SANDBOX_LISTEN", {
    description:
      "Where programs that use E2B's clients find their [sandboxes](sandboxes.md). Without it, nothing of that is loaded.",
  }),
  sandboxDomain: text("HIBERNAUT_SANDBOX_DOMAIN", {
    default: "localhost",
    pattern: "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$",
    accepts: "a hostname in lower case, with a port if it is not the usual one",
    description:
      "The domain of sandboxes: port 3000 of one is `3000-<id>.<domain>`, so it needs a wildcard name in DNS. With the port at which clients reach it, such as `example.com:7070`, unless that is 443.",
  }),
  sandboxTlsCert: optionalPath("HIBERNAUT_SANDBOX_TLS_CERT", {
    description: "A certificate for `*.<domain>` with its chain, in PEM. With it, sandboxes answer over HTTPS only.",
  }),
  sandboxTlsKey: optionalPath("HIBERNAUT_SANDBOX_TLS_KEY", { description: "The key of that certificate, in PEM." }),
};
