/** Where a target is: what people write, and what restic is told. Pure. */
import { isAbsolute, normalize } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";

/** Where backups are kept. */
export type Location =
  | { kind: "directory"; path: string }
  | { kind: "s3"; endpoint: string; bucket: string; prefix: string; region?: string }
  | { kind: "sftp"; user: string; host: string; port: number; path: string };

export type LocationKind = Location["kind"];

/** What is longer was not meant as a place. */
const MAX_URL_LENGTH = 1000;
const SSH_PORT = 22;
/** Nothing that `ssh` or its command line could take for anything else. */
const USER = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;
const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]+\])$/;
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/;
/** Control characters and quotes have no place in one. */
const PATH = /^[^\p{Cc}'"\\]+$/u;
const FORMS = "s3://<endpoint>/<bucket>/<prefix>, sftp://<user>@<host>/<path>, or the path of a directory";

/**
 * Returns the place that a text names. Throws `invalid_argument` for anything else.
 *
 * @example
 * parseLocation("s3://s3.eu-central-1.amazonaws.com/backups/home");
 * parseLocation("sftp://backup@nas.example.com/srv/hibernaut");
 * parseLocation("/mnt/usb/hibernaut");
 */
export function parseLocation(text: string): Location {
  if (text.length > MAX_URL_LENGTH || /\p{Cc}/u.test(text)) throw refused(text, `Use ${FORMS}.`);
  if (!text.includes("://")) return directoryOf(text);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw refused(text, `Use ${FORMS}.`);
  if (url.password !== "")
    throw refused("it", "It has a password in it, which would be shown and logged. Leave it out of the URL.");
  if (url.hash !== "") throw refused(text, "Leave out what begins with #.");
  switch (url.protocol) {
    case "s3:":
      return s3Of(text, url, "https");
    case "s3+http:":
      return s3Of(text, url, "http");
    case "sftp:":
      return sftpOf(text, url);
    default:
      throw refused(text, `Use ${FORMS}.`);
  }
}

/** Returns what {@link parseLocation} reads. */
export function locationText(location: Location): string {
  switch (location.kind) {
    case "directory":
      return location.path;
    case "s3": {
      const { endpoint, bucket, prefix, region } = location;
      const scheme = endpoint.startsWith("http:") ? "s3+http" : "s3";
      const path = [endpoint.replace(/^https?:\/\//, ""), bucket, ...(prefix === "" ? [] : [prefix])].join("/");
      return `${scheme}://${path}${region === undefined ? "" : `?region=${region}`}`;
    }
    case "sftp": {
      const { user, host, port, path } = location;
      return `sftp://${user}@${host}${port === SSH_PORT ? "" : `:${port}`}${path}`;
    }
  }
}

/** Returns the name that restic has for the place. */
export function resticName(location: Location): string {
  switch (location.kind) {
    case "directory":
      return location.path;
    case "s3":
      return `s3:${[location.endpoint, location.bucket, location.prefix].filter((part) => part !== "").join("/")}`;
    case "sftp":
      // The host is in the command that restic starts in place of its own, and restic takes what follows a colon for the path.
      return `sftp:${location.user}@${location.host.replace(/^\[|\]$/g, "").replaceAll(":", "-")}:${location.path}`;
  }
}

function directoryOf(text: string): Location {
  if (!isAbsolute(text) || !PATH.test(text)) throw refused(text, `Use ${FORMS}. A path begins with /.`);
  const path = normalize(text).replace(/(?<=.)\/+$/, "");
  if (path === "/") throw refused(text, "Name a directory below /.");
  return { kind: "directory", path };
}

function s3Of(text: string, url: URL, scheme: "https" | "http"): Location {
  if (url.username !== "") throw refused(text, "Credentials are not a part of the URL. Leave out what is before @.");
  const [bucket = "", ...rest] = segments(text, url);
  if (url.host === "" || !BUCKET.test(bucket)) throw refused(text, "Use s3://<endpoint>/<bucket>/<prefix>.");
  const { region, ...others } = Object.fromEntries(url.searchParams);
  if (Object.keys(others).length > 0 || (region !== undefined && !/^[a-z0-9-]{1,40}$/.test(region)))
    throw refused(text, "After ?, only region=<region> is understood.");
  const place = { endpoint: `${scheme}://${url.host}`, bucket, prefix: rest.join("/") };
  return { kind: "s3", ...place, ...(region !== undefined && { region }) };
}

function sftpOf(text: string, url: URL): Location {
  if (url.search !== "") throw refused(text, "Leave out what begins with ?.");
  const path = `/${segments(text, url).join("/")}`;
  if (!USER.test(url.username) || !HOST.test(url.hostname) || path === "/")
    throw refused(text, "Use sftp://<user>@<host>/<path>.");
  return { kind: "sftp", user: url.username, host: url.hostname, port: Number(url.port || SSH_PORT), path };
}

function segments(text: string, url: URL): string[] {
  const parts = decoded(url.pathname)
    ?.split("/")
    .filter((part) => part !== "");
  if (parts === undefined || parts.some((part) => part === ".." || !PATH.test(part)))
    throw refused(text, "Its path has characters that are not accepted.");
  return parts;
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

function refused(text: string, advice: string): HibernautError {
  const shown = text === "it" ? "The URL" : `"${text.slice(0, 200)}"`;
  return new HibernautError("invalid_argument", `${shown} is not a place for backups. ${advice}`, { field: "url" });
}
