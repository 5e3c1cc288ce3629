/** From what a build begins, read from a request. */
import { guestSize, type MachineConfig } from "@hibernaut/domain/config";
import { ON_HOST } from "@hibernaut/domain/image-reference";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { Refusal } from "../failure.ts";
import type { Parent } from "./machine.ts";

/** What a client says of it. */
export interface SentParent {
  fromTemplate?: string | undefined;
  fromImage?: string | undefined;
  /** A login for the image's registry. */
  fromImageRegistry?: unknown;
}

/** How large the machines of a template are to be. Undefined: as the parent's. */
interface Sizes {
  cpus: number | undefined;
  memoryMb: number | undefined;
}

/** What clients call the base image of E2B's cloud. */
const BASE_IMAGE = /^(?:docker\.io\/)?e2bdev\/base(?::latest)?$/;
const BASE_TEMPLATE = "base";
/** Runs in any image, and does nothing: what an image does by itself does not belong to a template. */
const WAITING = ["sleep", "infinity"];

/**
 * Returns where a build begins. `templateOf` finds a template of the app, or throws; `runs` tells whether the app has an image
 * already, which is on the host and otherwise out of its reach. Throws a {@link Refusal} for what cannot be
 * built from here.
 */
export function parentOf(
  { fromTemplate, fromImage, fromImageRegistry }: SentParent,
  sizes: Sizes,
  templateOf: (word: string) => Pick<TemplateRecord, "id" | "machine">,
  runs: (image: string) => boolean,
): Parent {
  if (fromImageRegistry !== undefined)
    throw new Refusal(501, "Logins for registries are the operator's: they are set with `hibernaut registry login`.");
  if (fromImage !== undefined && fromTemplate !== undefined)
    throw new Refusal(400, "A build begins from a template or from an image. Leave one of them out.");
  // A key is limited to its app, and the platform would read the file with rights of its own.
  if (fromImage !== undefined && ON_HOST.test(fromImage) && !runs(fromImage))
    throw new Refusal(
      403,
      `The image ${fromImage.slice(0, 200)} is on the platform's host, where a key cannot reach it. Upload it, and name it as \`hibernaut images upload\` prints it.`,
    );
  if (fromImage !== undefined && !BASE_IMAGE.test(fromImage))
    return { title: fromImage, config: { image: fromImage, guest: guestOf({}, sizes), init: { exec: WAITING } } };
  const title = fromTemplate ?? BASE_TEMPLATE;
  const { id, machine } = templateOf(title);
  const { config, programs, origin } = machine;
  // A memory has its size. The base is started once more in another one, unless there is more to it than its configuration.
  const plain = fromTemplate === undefined && programs === undefined && origin === undefined;
  if (plain && !isAsLarge(config, sizes)) return { title, config: { ...config, guest: guestOf(config, sizes) } };
  return { title, template: id, programs: programs ?? {}, asLarge: isAsLarge(config, sizes) };
}

function guestOf(
  { guest }: Pick<MachineConfig, "guest">,
  { cpus, memoryMb }: Sizes,
): NonNullable<MachineConfig["guest"]> {
  return {
    ...guest,
    ...(cpus !== undefined && { cpus }),
    ...(memoryMb !== undefined && { memory_mb: memoryMb }),
  };
}

function isAsLarge(config: MachineConfig, { cpus, memoryMb }: Sizes): boolean {
  const has = guestSize(config);
  return (cpus ?? has.cpus) === has.cpus && (memoryMb ?? has.memoryMb) === has.memoryMb;
}
