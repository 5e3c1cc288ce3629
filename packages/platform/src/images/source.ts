/** From a parsed reference to the arguments that let skopeo read the image. */
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { HibernautError } from "../domain/errors.ts";
import { daemonImageId } from "./daemon.ts";
import { PLATFORM } from "./manifest.ts";
import { formatReference, type LocalReference, type Reference } from "./reference.ts";
import { mayBePlain } from "./registry/endpoint.ts";
import { policyFiles } from "./trust.ts";

/** Options that every skopeo command gets: the platform, and no trust policy unless the owner wrote one. */
export function commonArguments(): string[] {
  const policy = policyFiles().some((file) => existsSync(file)) ? [] : ["--insecure-policy"];
  return [...policy, "--override-os", PLATFORM.os, "--override-arch", PLATFORM.architecture];
}

/** Whether skopeo need not ask for a certificate. */
export function skipsTls(reference: Reference, insecure: readonly string[]): boolean {
  return reference.kind === "registry" && mayBePlain(reference.host, insecure);
}

/**
 * Makes a local path absolute and checks that it is what its prefix says; a registry reference
 * passes unchanged. Throws `not_found` or `invalid_argument` that names the path.
 */
export async function checkSource(reference: Reference): Promise<Reference> {
  if (reference.kind !== "local") return reference;
  const path = resolve(reference.path);
  if (path.includes(":")) {
    throw bad(
      reference,
      `the folder of ${path} has a colon in its name, which the image tools cannot read. Move the file`,
    );
  }
  const checked = { ...reference, path };
  const stats = await statOf(checked, path);
  if (reference.transport === "oci") {
    if (!stats.isDirectory())
      throw bad(checked, `${path} is not a folder. For a file write oci-archive: or docker-archive:`);
    await statOf(checked, join(path, "index.json"));
  } else if (!stats.isFile()) {
    const hint = stats.isDirectory() ? "For a folder with an OCI layout write oci:" : "Save the image to a file first";
    throw bad(checked, `${path} is not a regular file. ${hint}`);
  }
  return checked;
}

/** Identifies the content of a local image as far as file times tell, and of one in Docker; empty for a registry. */
export async function contentStamp(reference: Reference): Promise<string> {
  if (reference.kind === "registry") return "";
  if (reference.kind === "daemon") return daemonImageId(reference);
  const file = reference.transport === "oci" ? join(reference.path, "index.json") : reference.path;
  const { ino, size, mtimeNs } = await stat(file, { bigint: true });
  return `${ino}-${size}-${mtimeNs}`;
}

/** skopeo's name of exactly the image that was resolved, whatever happens to the tag in the meantime. */
export function pinnedName(reference: Reference, digest: string): string {
  if (reference.kind !== "registry") return formatReference(reference);
  const { host, repository } = reference;
  return formatReference({ kind: "registry", host, repository, digest });
}

async function statOf(reference: LocalReference, path: string) {
  try {
    return await stat(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") {
      const message = `There is no ${path}, which the image ${formatReference(reference)} needs. Check the path; it is looked up on the server.`;
      throw new HibernautError("not_found", message, { image: formatReference(reference), path });
    }
    throw bad(reference, `${path} cannot be read (${code}). Let the platform's user read it`);
  }
}

function bad(reference: LocalReference, why: string): HibernautError {
  const image = formatReference(reference);
  return new HibernautError("invalid_argument", `The image ${image} cannot be used: ${why}.`, { image });
}
