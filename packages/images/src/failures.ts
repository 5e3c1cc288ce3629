/** Turns failures of tools, registries and the disk into HibernautErrors. Pure. */
import { basename } from "node:path";
import { HibernautError, isHibernautError } from "@hibernaut/domain/errors";
import { Refusal } from "./flatten/refusal.ts";
import type { Reference } from "./reference.ts";
import { RegistryFault } from "./registry/fault.ts";
import { ToolFailure } from "./tools.ts";

const DISK_FULL = /no space left on device|disk quota exceeded/i;
const REGISTRY_MISSING = /manifest unknown|name unknown|not found|repository name not known|status code 404/i;
const REGISTRY_DENIED = /unauthorized|denied|authentication required|status code 40[13]/i;
const LOCAL_MISSING = /no descriptor found for reference|Tag .* not found|Invalid source index/i;
const NAME_NEEDED = /more than one (?:oci )?image|choose an image/i;
/** What skopeo and Go's libraries print about damaged files. */
const CORRUPT = /did not match|does not match|invalid tar header|invalid checksum|corrupt/i;

/** Returns the HibernautError for anything that an import of `ref` throws. Errors that are none of these stay as they are. */
export function explain(error: unknown, ref: string, reference: Reference): unknown {
  if (isHibernautError(error)) return error;
  if (isAbort(error)) {
    return new HibernautError("aborted", `The import of the image ${ref} was cancelled. Request it again.`, {
      image: ref,
    });
  }
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === "ENOSPC" || code === "EDQUOT") return diskFull(ref);
  if (error instanceof RegistryFault && reference.kind === "registry") return faultOf(error, ref, reference.host);
  if (error instanceof Refusal) return refusalOf(error, ref);
  if (!(error instanceof ToolFailure)) return error;
  if (DISK_FULL.test(error.stderr)) return diskFull(ref);
  if (error.problem === "missing") return missingTool(ref, error.tool);
  if (basename(error.tool) !== "skopeo") {
    const message = `The image ${ref} could not be unpacked on this server: ${error.message}. Try again when the server is less busy.`;
    return new HibernautError("unavailable", message, { image: ref, tool: error.tool, reason: error.message });
  }
  return reference.kind === "registry" ? registryFailure(error, ref, reference.host) : localFailure(error, ref);
}

function localFailure(error: ToolFailure, ref: string): HibernautError {
  const details = { image: ref, tool: error.tool, reason: error.message };
  if (error.problem === "timeout") {
    const message = `The image ${ref} was not imported: ${error.tool} was stopped because ${error.message}. Try again when the server is less busy.`;
    return new HibernautError("unavailable", message, details);
  }
  if (LOCAL_MISSING.test(error.message)) {
    const message = `There is no image of that name in ${ref}: ${error.message}. Use the name of an image in it, or leave the name out.`;
    return new HibernautError("not_found", message, details);
  }
  if (NAME_NEEDED.test(error.message)) {
    const message = `${ref} contains several images: ${error.message}. Choose one by adding :NAME.`;
    return new HibernautError("invalid_argument", message, details);
  }
  const message = `The image ${ref} cannot be read: ${error.message}. Check that it is complete and of the kind that its prefix says, or create it again.`;
  return new HibernautError("invalid_argument", message, details);
}

/** The HibernautError for a registry's refusal of an image. */
function faultOf({ kind, message: reason, cause }: RegistryFault, ref: string, host: string): HibernautError {
  const details = { image: ref, registry: host, reason };
  if (kind === "denied") {
    const message = `The registry ${host} does not show the image ${ref}: it does not exist or needs a login (${reason}). Check the name, or run hibernaut registry login ${host}.`;
    return new HibernautError("not_found", message, details, { cause });
  }
  if (kind === "login") {
    const message = `The registry ${host} does not show the image ${ref} to the stored login: ${reason}. Check the name and the permissions of the login, or run hibernaut registry login ${host} again.`;
    return new HibernautError("not_found", message, details, { cause });
  }
  if (kind === "missing") {
    const message = `The registry ${host} has no image ${ref}: ${reason}. Check its name and tag.`;
    return new HibernautError("not_found", message, details, { cause });
  }
  if (kind === "invalid") {
    const message = `The image ${ref} from ${host} cannot be used: ${reason}. Push it again; if the error persists, do not trust the network between you and the registry.`;
    return new HibernautError("invalid_argument", message, details, { cause });
  }
  const message = `The image ${ref} could not be fetched from ${host}: ${reason}. Check the network and the registry, then try again: the download continues where it stopped.`;
  return new HibernautError("unavailable", message, details, { cause });
}

function registryFailure(error: ToolFailure, ref: string, host: string): HibernautError {
  const details = { image: ref, registry: host, tool: error.tool, reason: error.message };
  if (error.problem === "failed" && REGISTRY_DENIED.test(error.message)) {
    const message = `The registry ${host} does not show the image ${ref}: it does not exist or needs a login. Check the name, or run hibernaut registry login ${host}.`;
    return new HibernautError("not_found", message, details);
  }
  if (error.problem === "failed" && REGISTRY_MISSING.test(error.message)) {
    const message = `The registry ${host} has no image ${ref}. Check its name and tag.`;
    return new HibernautError("not_found", message, details);
  }
  if (CORRUPT.test(error.message)) {
    const message = `The image ${ref} is damaged or of an unsupported kind: ${error.message}. Push it again.`;
    return new HibernautError("invalid_argument", message, details);
  }
  const message = `The image ${ref} could not be fetched from ${host}: ${error.message}. Check the network and the registry, then try again.`;
  return new HibernautError("unavailable", message, details);
}

/** The HibernautError for an image that the program which unpacks it refused. */
function refusalOf({ kind, message: reason }: Refusal, ref: string): HibernautError {
  const image = `The image ${ref}`;
  if (kind === "bytes") {
    const message = `${image} has more than ${reason} bytes when it is unpacked, which is the limit. Make it smaller, or have HIBERNAUT_IMAGE_SIZE raised on the platform.`;
    return new HibernautError("payload_too_large", message, { image: ref, limit_bytes: Number(reason) });
  }
  if (kind === "entries") {
    const message = `${image} has more than ${reason} files, directories and other entries, which is the limit. Make it smaller, or have HIBERNAUT_IMAGE_ENTRIES raised on the platform.`;
    return new HibernautError("payload_too_large", message, { image: ref, limit_entries: Number(reason) });
  }
  if (kind === "disk") {
    const message = `${image} was not imported: the disk of the data directory lacks ${reason} bytes for it and for what HIBERNAUT_DISK_RESERVE keeps free. Free some space, as with \`hibernaut images prune\`, then try again.`;
    return new HibernautError("unavailable", message, { image: ref, reason: "disk full", lacks_bytes: Number(reason) });
  }
  if (kind === "damaged") {
    const message = `${image} cannot be read: ${reason}. Check that it is complete, or create it again.`;
    return new HibernautError("invalid_argument", message, { image: ref, reason });
  }
  if (kind === "missing") return missingTool(ref, reason);
  if (DISK_FULL.test(reason)) return diskFull(ref);
  const message = `${image} could not be packed on this server: ${reason}. Check the disk of the data directory, and that squashfs-tools 4.5 or later is installed (npm run setup does that), then try again.`;
  return new HibernautError("unavailable", message, { image: ref, reason });
}

function missingTool(ref: string, tool: string): HibernautError {
  const message = `The image ${ref} cannot be imported: ${tool} is not installed. Install skopeo and squashfs-tools 4.5 or later (npm run setup does).`;
  return new HibernautError("unavailable", message, { image: ref, tool });
}

function diskFull(ref: string): HibernautError {
  const message = `The image ${ref} was not imported: the disk of the data directory is full. Free some space (an import needs about twice the image's size), then try again.`;
  return new HibernautError("unavailable", message, { image: ref, reason: "disk full" });
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
