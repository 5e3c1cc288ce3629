/** Reads manifests, lists of manifests and configurations of images. Pure. */
import { createHash } from "node:crypto";
import { HibernautError } from "@hibernaut/domain/errors";
import type { ImageConfig } from "./contract.ts";

/** The platform that machines run. */
export const PLATFORM = { os: "linux", architecture: "amd64" } as const;

type Json = Record<string, unknown>;

/**
 * Returns the digest of the manifest for linux/amd64, given the raw manifest, or list of manifests, of a reference.
 * Throws `invalid_argument` when the list has none or the text is not a manifest.
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
  return descriptorDigest(found, ref);
}

/** Returns the digest of a text, as registries write it. */
export function digestOf(content: string): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

/**
 * Returns the part of an image configuration that is needed to start the image. Throws `invalid_argument` when the
 * configuration is for another platform than linux/amd64, or not that of an image.
 */
export function readImageConfig(raw: string, ref: string): ImageConfig {
  const image = parseObject(raw, ref, "configuration");
  const platform = platformName({ platform: image });
  // Other artifacts (charts, signatures) are stored like images but have no platform.
  if (platform === "?/?") throw unreadable(ref, "configuration");
  if (platform !== `${PLATFORM.os}/${PLATFORM.architecture}`) throw wrongPlatform(ref, platform);
  const config = asObject(image.config);
  const stopSignal = text(config.StopSignal);
  const exposedPorts = portsIn(config.ExposedPorts);
  return {
    entrypoint: texts(config.Entrypoint),
    cmd: texts(config.Cmd),
    env: texts(config.Env),
    user: text(config.User),
    workingDir: text(config.WorkingDir),
    ...(stopSignal && { stopSignal }),
    ...(exposedPorts.length > 0 && { exposedPorts }),
  };
}

/** An image that names more does not know where it listens. */
const MOST_EXPOSED = 32;

/** The ports of `{"5432/tcp": {}}`. */
function portsIn(exposed: unknown): number[] {
  const ports = Object.keys(asObject(exposed)).flatMap((key) => /^(\d{1,5})(?:\/tcp)?$/.exec(key)?.[1] ?? []);
  const numbers = ports.map(Number).filter((port) => port >= 1 && port <= 65_535);
  return numbers.toSorted((a, b) => a - b).slice(0, MOST_EXPOSED);
}

/** Returns the digests of the layers' content, uncompressed, as hex. Empty when the configuration has none. */
export function diffIdsOf(raw: string, ref: string): string[] {
  const { rootfs } = parseObject(raw, ref, "configuration");
  return texts(asObject(rootfs).diff_ids).map((digest) => digest.replace(/^sha256:/, ""));
}

/** Returns the digests of a manifest's layers, the lowest first. Throws `invalid_argument` when they are not ones. */
export function layerDigests(manifest: Json, ref: string): string[] {
  const layers: unknown[] = Array.isArray(manifest.layers) ? manifest.layers : [];
  return layers.map((layer) => descriptorDigest(layer, ref));
}

/** Returns the digest in a descriptor, such as a manifest's `config`. Throws `invalid_argument` when there is none. */
export function descriptorDigest(descriptor: unknown, ref: string): string {
  const { digest } = asObject(descriptor);
  if (typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest)) throw unreadable(ref, "manifest");
  return digest;
}

/** Parses a JSON object. Throws `invalid_argument`, with the image and the part in the message, when it is not one. */
export function parseObject(raw: string, ref: string, part: string): Json {
  try {
    const parsed: unknown = JSON.parse(raw);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Json;
  } catch {
    // reported below, like any other invalid content
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
  const message = `The image ${ref} is for ${platforms || "an unknown platform"}; machines run ${PLATFORM.os}/${PLATFORM.architecture}. Build or choose an image for that platform.`;
  return new HibernautError("invalid_argument", message, { image: ref, platforms });
}

/** Schema 1 is refused because its digest does not cover the whole text, and Docker itself no longer reads it. */
function outdated(ref: string): HibernautError {
  const message = `The image ${ref} uses Docker's manifest schema 1, which was abandoned in 2019. Pull and push it again with a current tool.`;
  return new HibernautError("invalid_argument", message, { image: ref });
}

function unreadable(ref: string, part: string): HibernautError {
  const message = `The image ${ref} cannot be used: its ${part} is not that of a container image. Check that it is an image and not another kind of artifact.`;
  return new HibernautError("invalid_argument", message, { image: ref });
}
