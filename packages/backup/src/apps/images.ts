/** Brings the images of restored machines here, and finds out which of those that are here are not the same. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { HeldImage, ImageStore } from "@hibernaut/images";
import { type ImageSource, imageFrom } from "./fetch.ts";

interface BringOptions extends ImageSource {
  images: Pick<ImageStore, "adopt" | "fingerprint">;
}

/** Images that are kept until this is disposed of. */
interface Brought extends AsyncDisposable {
  /** Digests of images that were here already, and are other builds than those of the set. */
  others: ReadonlySet<string>;
}

/**
 * Takes the images of these machines from a set, unless they are here. Those that are here are compared with the set's, which are
 * read for that: the memory of a machine holds parts of its image, at the places that they have in its file. Rejects with
 * `failed_precondition` when neither has an image.
 */
export async function bringImages(
  machines: readonly Pick<MachineRecord, "id" | "imageDigest">[],
  options: BringOptions,
  signal: AbortSignal,
): Promise<Brought> {
  const { images, folder } = options;
  const fetch = imageFrom(options);
  const held: HeldImage[] = [];
  const others = new Set<string>();
  const release = async () => {
    for (const image of held) image[Symbol.dispose]();
  };
  try {
    for (const digest of new Set(machines.map(({ imageDigest }) => imageDigest))) {
      let isNew = false;
      const image = await images.adopt(
        digest,
        (...wanted) => {
          isNew = true;
          return fetch(...wanted);
        },
        { signal },
      );
      if (image === undefined) throw missing(digest, machines);
      held.push(image);
      if (isNew) continue;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const copy = join(folder, "image-to-compare");
      const isStored = (await fetch(digest, copy, signal)) !== undefined;
      if (isStored && (await sumOf(copy, signal)) !== (await images.fingerprint(digest))) others.add(digest);
    }
    return { others, [Symbol.asyncDispose]: release };
  } catch (error) {
    await release();
    throw error;
  }
}

function missing(digest: string, machines: readonly Pick<MachineRecord, "id" | "imageDigest">[]): HibernautError {
  const machine = machines.find(({ imageDigest }) => imageDigest === digest)?.id ?? "";
  const message = `Neither this host nor the set has the image ${digest} of machine ${machine}. Use another set.`;
  return new HibernautError("failed_precondition", message, { machine_id: machine });
}

/** SHA-256, hex. */
async function sumOf(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024, signal }))
    hash.update(chunk as Buffer);
  return hash.digest("hex");
}
