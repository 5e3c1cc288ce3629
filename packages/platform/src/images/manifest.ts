/** Reads what images say of themselves: manifests, lists of manifests, configurations. Pure. */
import { createHash } from "node:crypto";
import { HibernautError } from "../domain/errors.ts";
import type { ImageConfig } from "./contract.ts";

/** What machines run. */
export const PLATFORM = { os: "linux", architecture: "amd64" } as const;

type Json = Record<string, unknown>;

/**
 * The digest of the manifest for linux/amd64, from the raw manifest or list of manifests that a
 * reference led to. Throws `invalid_argument` when the list has none, or the text is no manifest.
 */
export function resolveManifest(raw: string, ref: string): string {
  const manifest = parseObject(raw, ref, "manifest");
  if (manifest.schemaVersion === 1) throw outdated(ref);
  if (!Array.isArray(manifest.manifests)) return digestOf(raw);
  const entries = manifest.manifests.map((entry) => asObject(entry));
  const found = entries.find((entry) => {
    const { os, architecture } = asObject(entry.platform);
    return os === PLATFORM.os && architecture === PLATFORM.architecture;
  });
  if (!found)
    throw wrongPlatform(
      ref,
      entries
        .map(platformName)
        .filter((name) => name !== "unknown/unknown")
        .join(", "),
    );
  if (typeof found.digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(found.digest))
    throw unreadable(ref, "manifest");
  return found.digest;
}

/** Digest of a text, as registries name it. */
export function digestOf(content: string): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

/**
 * The part of an image configuration that starting it needs. Throws `invalid_argument` when it is
 * for another platform than linux/amd64 or not an image configuration.
 */
export function readImageConfig(raw: string, ref: string): ImageConfig {
  const image = parseObject(raw, ref, "configuration");
  const platform = platformName({ platform: image });
  // Artifacts (charts, signatures) are stored like images and have no platform.
  if (platform === "?/?") throw unreadable(ref, "configuration");
  if (platform !== `${PLATFORM.os}/${PLATFORM.architecture}`) throw wrongPlatform(ref, platform);
  const config = asObject(image.config);
  const stopSignal = text(config.StopSignal);
  return {
    entrypoint: texts(config.Entrypoint),
    cmd: texts(config.Cmd),
    env: texts(config.Env),
    user: text(config.User),
    workingDir: text(config.WorkingDir),
    ...(stopSignal && { stopSignal }),
  };
}

/** The digest a descriptor field of `manifest` points at, `config` for example. Throws `invalid_argument`. */
export function descriptorDigest(descriptor: unknown, ref: string): string {
  const { digest } = asObject(descriptor);
  if (typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest)) throw unreadable(ref, "manifest");
  return digest;
}

/** A JSON object from text. Throws `invalid_argument` that names the image and the part. */
export function parseObject(raw: string, ref: string, part: string): Json {
  try {
    const parsed: unknown = JSON.parse(raw);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Json;
  } catch {
    // said below, in the same words as any other wrong content
  }
  throw unreadable(ref, part);
}

function platformName(entry: Json): string {
  const { os, architecture } = asObject(entry.platform);
  return `${text(os) || "?"}/${text(architecture) || "?"}`;
}

function asObject(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function wrongPlatform(ref: string, platforms: string): HibernautError {
  const message = `The image ${ref} is for ${platforms || "no platform it names"}; machines run ${PLATFORM.os}/${PLATFORM.architecture}. Build or choose it for that platform.`;
  return new HibernautError("invalid_argument", message, { image: ref, platforms });
}

/** Their digest leaves out a part of their text, and docker itself no longer reads them. */
function outdated(ref: string): HibernautError {
  const message = `The image ${ref} is of Docker's manifest schema 1, which was given up in 2019. Pull and push it again with a current tool.`;
  return new HibernautError("invalid_argument", message, { image: ref });
}

function unreadable(ref: string, part: string): HibernautError {
  const message = `The image ${ref} cannot be used: its ${part} is not that of a container image. Check that it is an image and not another kind of artifact.`;
  return new HibernautError("invalid_argument", message, { image: ref });
}
