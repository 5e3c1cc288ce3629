/** Settings of the platform as a whole: where its data is, who may reach its API, what it logs. */
import { choice, list, listen, optionalListen, optionalPath, path, text } from "./forms.ts";
import { defaultDataDir } from "./places.ts";

export const PLATFORM_SETTINGS = {
  /** Database, images, machines. */
  dataDir: path("HIBERNAUT_DATA_DIR", {
    fallback: defaultDataDir,
    defaultText: "`/var/lib/hibernaut` as root, otherwise `$XDG_DATA_HOME/hibernaut` or `~/.local/share/hibernaut`",
    description:
      "[Everything that is kept](operate.md#the-data-directory). One data directory belongs to one platform. The path may have up to 75 bytes, because sockets are created below it. Use the same path at every start: running guests are found by it.",
  }),
  apiListen: listen("HIBERNAUT_API_LISTEN", {
    default: { host: "127.0.0.1", port: 4280 },
    description:
      "Where the [API](api.md) listens. The default is loopback because anyone who can use the API can run programs on this host: do not offer it to a network without [TLS](api.md#offer-the-api-to-a-network).",
  }),
  apiTlsCert: optionalPath("HIBERNAUT_API_TLS_CERT", {
    description:
      "The certificate with which the API is served over [TLS](api.md#offer-the-api-to-a-network), in PEM with its chain. A new one is adopted within seconds. Without it, the API has no TLS.",
  }),
  apiTlsKey: optionalPath("HIBERNAUT_API_TLS_KEY", { description: "The key of that certificate, in PEM." }),
  flyListen: optionalListen("HIBERNAUT_FLY_LISTEN", {
    description:
      "Where [Fly's clients](fly.md) find the platform, such as `127.0.0.1:4281`; with the API's certificate, if it has one. Without this setting, nothing of that is loaded.",
  }),
  apiTlsClientCa: optionalPath("HIBERNAUT_API_TLS_CLIENT_CA", {
    description:
      "The authorities, in PEM, one of which must have signed a certificate that a client shows. It is needed in addition to a token. Without this setting, clients need no certificate.",
  }),
  apiCorsOrigins: list("HIBERNAUT_API_CORS_ORIGINS", {
    default: [],
    item: /^https?:\/\/[a-z0-9.-]+(:\d{1,5})?$/,
    of: "origins such as https://console.example.com",
    description:
      "The origins whose pages may use the API from a browser, exactly as browsers name them. By default, none may. A page needs a token in any case.",
  }),
  dashboard: choice("HIBERNAUT_DASHBOARD", ["on", "off"], {
    default: "on",
    description:
      "Whether the API also serves the dashboard, at `/`. The dashboard can do nothing that the API cannot, and its pages say nothing before someone signs in.",
  }),
  /** Reported by `GET /v1/platform/regions` and given to machines. */
  region: text("HIBERNAUT_REGION", {
    default: "local",
    pattern: "^[a-z0-9-]{1,32}$",
    accepts: "1 to 32 of a-z, 0-9 and -",
    description: "The name of this place, as the API reports it and machines see it.",
  }),
  logLevel: choice("HIBERNAUT_LOG_LEVEL", ["debug", "info", "warn", "error", "silent"], {
    default: "info",
    description: "How much is logged. The log goes to standard error.",
  }),
  logFormat: choice("HIBERNAUT_LOG_FORMAT", ["auto", "text", "json"], {
    default: "auto",
    description:
      "`json` writes one object per line; `text` writes time, level, message and the fields that matter, for people. `auto` is `text` on a terminal and `json` anywhere else.",
  }),
};
