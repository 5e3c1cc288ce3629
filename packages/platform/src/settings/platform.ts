/** Settings of the platform as a whole: where its data is, who may reach its API, what it logs. */
import { choice, listen, path, text } from "./forms.ts";
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
      "Where the [API](api.md) listens. The default is loopback because anyone who can use the API can run programs on this host: do not offer it to a network without TLS in front.",
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
