/** References of images that may be on this machine. Pure. */
import { CliError } from "../failure.ts";

/** An image in a file or directory, or in a Docker daemon. */
export interface LocalImage {
  kind: "oci" | "oci-archive" | "docker-archive" | "docker-daemon";
  /** The path as written. For `docker-daemon`, the image's name there. */
  path: string;
  /** Which image in the file or directory. Empty when there is only one, and for `docker-daemon`. */
  name: string;
  /** The manifest that the image must have: `sha256:` and 64 hex digits. */
  digest: string | undefined;
}

const LOCAL = /^(oci|oci-archive|docker-archive|docker-daemon):(.+?)(?:@(sha256:[0-9a-f]{64}))?$/;

/** Parses a reference. Undefined for images in a registry, and for what the platform has already. */
export function localImage(ref: string): LocalImage | undefined {
  const [, kind, rest = "", digest] = LOCAL.exec(ref) ?? [];
  if (kind === undefined) return undefined;
  if (kind === "docker-daemon") return { kind, path: rest, name: "", digest };
  // The first colon ends the path, as for the platform.
  const colon = rest.indexOf(":");
  const [path, name] = colon < 0 ? [rest, ""] : [rest.slice(0, colon), rest.slice(colon + 1)];
  return { kind: kind as LocalImage["kind"], path, name, digest };
}

/** Formats a reference, with another path if you give one. */
export function formatLocal({ kind, path, name, digest }: LocalImage, at = path): string {
  return `${kind}:${at}${name && `:${name}`}${digest === undefined ? "" : `@${digest}`}`;
}

/** Whether a name is a place among the images of a file, as in `@0`. */
export function isPlace(name: string): boolean {
  return /^@\d+$/.test(name);
}

/** The image at the place that the reference names. */
export function atPlace<T>(all: readonly T[], image: LocalImage): T {
  const found = all[Number(image.name.slice(1))];
  if (found !== undefined) return found;
  throw bad(image, `it contains ${all.length} images, counted from @0`);
}

/** The error for an image that cannot be uploaded. */
export function bad(image: LocalImage, why: string): CliError {
  return new CliError("invalid_argument", `The image ${formatLocal(image)} cannot be uploaded: ${why}.`);
}

/** The names that the platform accepts for an image, near enough. It checks them itself. */
const NAME =
  /^(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::\w[\w.-]{0,127})?$/;

/**
 * Returns the name that an uploaded image gets: the first that can be one, without Docker's default prefixes, or else the
 * name of its file.
 *
 * @example
 * uploadName(["shop:latest"], "/srv/x.tar"); // "shop:latest"
 * uploadName([], "/srv/My shop.tar"); // "my-shop"
 */
export function uploadName(wanted: readonly (string | undefined)[], path: string): string {
  const short = wanted.map((name) => name?.replace(/^(?:docker\.io\/(?:library\/)?|localhost\/)/, ""));
  const found = short.find((name) => name !== undefined && name.length <= 200 && NAME.test(name));
  if (found !== undefined) return found;
  const file = path.replace(/\/+$/, "").split("/").at(-1) ?? "";
  const plain = file
    .replace(/(?:\.tar)?(?:\.(?:gz|tgz|zst))?$/i, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return plain.slice(0, 100).replace(/-+$/, "") || "image";
}
