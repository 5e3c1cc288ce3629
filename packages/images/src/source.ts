/** Checks sources of images, and turns them into arguments for skopeo. */
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { isAbsent } from "@hibernaut/lib/absence";
import { daemonImageId } from "./daemon.ts";
import { PLATFORM } from "./manifest.ts";
import { formatReference, type LocalReference, type Reference } from "./reference.ts";
import { mayBePlain } from "./registry/endpoint.ts";
import { policyFiles } from "./trust.ts";

/** Returns the options of every skopeo command: the platform, and no trust policy unless the host has one. */
export function commonArguments(): string[] {
  const policy = policyFiles().some((file) => existsSync(file)) ? [] : ["--insecure-policy"];
  return [...policy, "--override-os", PLATFORM.os, "--override-arch", PLATFORM.architecture];
}

/** Whether skopeo may skip checking the registry's certificate. */
export function skipsTls(reference: Reference, insecure: readonly string[]): boolean {
  return reference.kind === "registry" && mayBePlain(reference.host, insecure);
}

/**
 * Makes a local path absolute, and checks that it is of the kind that its prefix says. Other references pass unchanged.
 * Rejects with `not_found` or `invalid_argument`, with the path in the message.
 */
export async function checkSource(reference: Reference): Promise<Reference> {
  if (reference.kind !== "local") return reference;
  const path = resolve(reference.path);
  if (path.includes(":")) {
    throw bad(reference, `the path ${path} contains a colon, which the image tools cannot read. Move or rename it`);
  }
  const checked = { ...reference, path };
  const stats = await statOf(checked, path);
  if (reference.transport === "oci") {
    if (!stats.isDirectory())
      throw bad(checked, `${path} is not a directory. For a file, write oci-archive: or docker-archive:`);
    await statOf(checked, join(path, "index.json"));
  } else if (!stats.isFile()) {
    const hint = stats.isDirectory()
      ? "For a directory with an OCI layout, write oci:"
      : "Save the image to a file first";
    throw bad(checked, `${path} is not a regular file. ${hint}`);
  }
  return checked;
}

/**
 * Returns a word that changes with the content of a local image, as far as its file times do, or of an image in Docker.
 * Empty for a registry and for an upload, where a digest finds the image.
 */
export async function contentStamp(reference: Reference): Promise<string> {
  if (reference.kind === "registry" || reference.kind === "upload") return "";
  if (reference.kind === "daemon") return daemonImageId(reference);
  const file = reference.transport === "oci" ? join(reference.path, "index.json") : reference.path;
  const { ino, size, mtimeNs } = await stat(file, { bigint: true });
  return `${ino}-${size}-${mtimeNs}`;
}

/** Returns skopeo's name for exactly the image that was resolved, even if its tag moves meanwhile. */
export function pinnedName(reference: Reference, digest: string): string {
  if (reference.kind !== "registry") return formatReference(reference);
  const { host, repository } = reference;
  return formatReference({ kind: "registry", host, repository, digest });
}

async function statOf(reference: LocalReference, path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (isAbsent(error)) {
      const message = `There is no ${path}, which the image ${formatReference(reference)} needs. Check the path; it must exist on the platform's host.`;
      throw new HibernautError("not_found", message, { image: formatReference(reference), path });
    }
    throw bad(
      reference,
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code}). Give the platform's user permission to read it`,
    );
  }
}

function bad(reference: LocalReference, why: string): HibernautError {
  const image = formatReference(reference);
  return new HibernautError("invalid_argument", `The image ${image} cannot be used: ${why}.`, { image });
}
