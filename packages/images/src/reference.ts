/** Parses and formats image references. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import { splitPin } from "@hibernaut/domain/pinned";

/** An image in a file or directory on the host. */
export interface LocalReference {
  kind: "local";
  /** `oci` is a directory (an OCI layout); the other two are tar files. */
  transport: "oci" | "oci-archive" | "docker-archive";
  /** As written: absolute, or relative to the platform's working directory. */
  path: string;
  /** Which image in the file. Empty when no name was given; the file must then contain exactly one image. */
  name: string;
  /** The manifest that the image must have: `sha256:` and 64 hex digits. */
  digest?: string;
}

/** An image in a registry. Has either a `tag` or a `digest`. */
export interface RegistryReference {
  kind: "registry";
  /** `name`, `name:port`; `docker.io` for Docker Hub. */
  host: string;
  repository: string;
  tag?: string;
  /** `sha256:` and 64 hex digits. */
  digest?: string;
}

/** An image in the host's Docker. */
export interface DaemonReference {
  kind: "daemon";
  /** The registry's name, which is part of the name of every image in Docker. */
  host: string;
  repository: string;
  tag: string;
  /** As in a local reference. */
  digest?: string;
}

/** An image that a client uploaded. Its name says what it is; its digest alone decides which image it is. */
export interface UploadReference {
  kind: "upload";
  /** `shop:latest` */
  name: string;
  /** `sha256:` and 64 hex digits. */
  digest: string;
}

export type Reference = LocalReference | RegistryReference | DaemonReference | UploadReference;

const LOCAL = ["oci", "oci-archive", "docker-archive"] as const;

/** Kinds that skopeo supports but machines cannot use. They are refused by name rather than taken for a repository. */
const UNSUPPORTED = ["dir", "containers-storage", "ostree", "sif", "tarball", "http", "https", "file"];

// The grammar of the distribution project, as expressions that match in linear time.
const HOST = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::\d{1,5})?$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const LOCAL_NAME = /^(?:@\d{1,6}|[A-Za-z0-9][\w.:@/+-]{0,255})$/;

/** Longer than any valid path or reference. Limits the time that parsing takes. */
const MAX_LENGTH = 4096;
/** The distribution project's limit for host and repository together. */
const MAX_NAME_LENGTH = 255;

/**
 * Parses a reference. Throws `invalid_argument` with what is wrong and what to write instead.
 *
 * @example
 * parseReference("redis:7"); // docker.io/library/redis, tag 7
 * parseReference("oci-archive:./app.tar");
 */
export function parseReference(text: string): Reference {
  if (text === "") throw refuse(text, "it is empty");
  if (text.length > MAX_LENGTH) throw refuse(`${text.slice(0, 64)}...`, `it is longer than ${MAX_LENGTH} characters`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused here
  if (/[\x00-\x20\x7f]/.test(text)) throw refuse(text, "it contains a space or a control character");
  const colon = text.indexOf(":");
  const prefix = colon < 0 ? "" : text.slice(0, colon);
  const rest = text.slice(colon + 1);
  const transport = LOCAL.find((known) => known === prefix);
  if (transport) {
    const { name, digest } = splitPin(rest);
    return { ...parseLocal(text, transport, name), ...(digest !== undefined && { digest }) };
  }
  if (prefix === "docker") {
    if (!rest.startsWith("//")) throw refuse(text, "docker: must be followed by //");
    return parseRegistry(text, rest.slice(2));
  }
  if (prefix === "docker-daemon") {
    const { name, digest } = splitPin(rest);
    const { host, repository, tag } = parseRegistry(text, name);
    const tagged = name.slice(name.lastIndexOf("/") + 1).includes(":");
    if (tag === undefined || (digest !== undefined && !tagged))
      throw refuse(text, "an image in Docker must be named by its tag, not by a digest");
    return { kind: "daemon", host, repository, tag, ...(digest !== undefined && { digest }) };
  }
  if (prefix === "upload") return parseUpload(text, rest);
  if (UNSUPPORTED.includes(prefix)) {
    throw refuse(text, `${prefix}: is not a supported kind of image`);
  }
  return parseRegistry(text, text);
}

/** Returns the name under which a registry's login is stored. Throws `invalid_argument` when it is not a valid name. */
export function registryHost(text: string): string {
  const host = text.replace(/^https:\/\//, "").replace(/\/$/, "");
  if (host === "index.docker.io" || host === "registry-1.docker.io") return "docker.io";
  if (isHostName(host)) return host;
  const message = `"${text.slice(0, 64)}" is not a valid registry name. Write it as in images: ghcr.io, host:5000, or docker.io for Docker Hub.`;
  throw new HibernautError("invalid_argument", message, { registry: text.slice(0, 64) });
}

/** Whether a registry can have the name: what looks like a name may be a number beyond all addresses, or have a port beyond all ports. */
function isHostName(text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && HOST.test(text) && URL.canParse(`https://${text}/`);
}

/** Formats a reference in full, with defaults filled in, as skopeo accepts it. */
export function formatReference(reference: Reference): string {
  if (reference.kind === "local") {
    return `${reference.transport}:${reference.path}${reference.name && `:${reference.name}`}`;
  }
  if (reference.kind === "daemon") return `docker-daemon:${reference.host}/${reference.repository}:${reference.tag}`;
  if (reference.kind === "upload") return `upload:${reference.name}@${reference.digest}`;
  const { host, repository, tag, digest } = reference;
  return `docker://${host}/${repository}${digest ? `@${digest}` : `:${tag}`}`;
}

function parseLocal(text: string, transport: LocalReference["transport"], rest: string): LocalReference {
  // The first colon ends the path, as in skopeo. A path that contains a colon cannot be expressed.
  const colon = rest.indexOf(":");
  const path = colon < 0 ? rest : rest.slice(0, colon);
  const name = colon < 0 ? "" : rest.slice(colon + 1);
  if (path === "") throw refuse(text, `${transport}: must be followed by a path`);
  if (colon >= 0 && !LOCAL_NAME.test(name))
    throw refuse(text, `"${name}", which follows the path, is not a valid image name`);
  return { kind: "local", transport, path, name };
}

function parseUpload(text: string, rest: string): UploadReference {
  const { name, digest } = splitPin(rest);
  if (digest === undefined)
    throw refuse(
      text,
      "an uploaded image is found by its digest, as in upload:shop:latest@sha256:...; hibernaut releases and hibernaut images list show it",
    );
  parseRegistry(text, name); // the same rules for names
  return { kind: "upload", name, digest };
}

function parseRegistry(text: string, rest: string): RegistryReference {
  const [named, digest, ...more] = rest.split("@");
  if (named === undefined || more.length > 0) throw refuse(text, "it contains more than one @");
  if (digest !== undefined && !DIGEST.test(digest)) {
    throw refuse(text, "@ must be followed by a digest: sha256: and 64 lowercase hex digits");
  }
  const lastColon = named.lastIndexOf(":");
  const tagged = lastColon > named.lastIndexOf("/");
  const name = tagged ? named.slice(0, lastColon) : named;
  const tag = tagged ? named.slice(lastColon + 1) : "latest";
  if (!TAG.test(tag)) throw refuse(text, `"${tag}" is not a valid tag`);
  const { host, repository } = splitName(name);
  if (/^[./~]|\.(tar|tgz|gz|zst)$/.test(rest)) {
    throw refuse(
      text,
      "it looks like a path: write oci-archive:PATH or docker-archive:PATH for a file, oci:PATH for a directory",
    );
  }
  if (!isHostName(host)) throw refuse(text, `"${host}" is not a valid registry name`);
  if (!REPOSITORY.test(repository)) throw refuse(text, repositoryReason(repository));
  if (`${host}/${repository}`.length > MAX_NAME_LENGTH)
    throw refuse(text, `its name is longer than ${MAX_NAME_LENGTH} characters`);
  // If both are given, the digest decides, as in other tools. skopeo accepts only one of them.
  return digest === undefined
    ? { kind: "registry", host, repository, tag }
    : { kind: "registry", host, repository, digest };
}

/** Applies Docker's rule: the first part is a host if it cannot be a user name on Docker Hub. */
function splitName(name: string): { host: string; repository: string } {
  const slash = name.indexOf("/");
  const first = name.slice(0, Math.max(slash, 0));
  const isHost = /[.:A-Z]/.test(first) || first === "localhost";
  const host = isHost ? first : "docker.io";
  const repository = isHost ? name.slice(slash + 1) : name;
  if (host !== "docker.io" && host !== "index.docker.io") return { host, repository };
  return { host: "docker.io", repository: repository.includes("/") ? repository : `library/${repository}` };
}

function repositoryReason(repository: string): string {
  const shown = repository.replace(/^library\//, "");
  if (shown === "") return "the name of the image is missing";
  if (/[A-Z]/.test(shown)) return `"${shown}" has uppercase letters; repository names are lowercase`;
  return `"${shown}" is not a valid repository name`;
}

function refuse(text: string, why: string): HibernautError {
  return new HibernautError(
    "invalid_argument",
    `The image reference "${text}" cannot be used: ${why}. Write name:tag, registry/name:tag, oci:DIRECTORY, oci-archive:FILE, docker-archive:FILE or docker-daemon:NAME:TAG.`,
    { image: text },
  );
}
