/** Brings an image to the platform before it is used: by a pull, or by an upload if the image is on this machine. */
import { resolve } from "node:path";
import type { PulledImage } from "@hibernaut/client";
import type { Option } from "../command.ts";
import type { Context } from "../context.ts";
import { toFailure } from "../failure.ts";
import { interruptible } from "../interrupting.ts";
import { pull, showing } from "../pulling.ts";
import { formatLocal, type LocalImage, localImage } from "./reference.ts";
import { shouldUpload, shouldUploadAfter } from "./where.ts";

/** The options of commands that run an image. */
export const UPLOAD = [
  { flags: "--upload", description: "read the image's file on this machine and upload it" },
  { flags: "--no-upload", description: "let the platform read the image's file on its own host" },
] as const satisfies readonly Option[];

/** Makes the image ready and returns it, with the reference for machines and releases. */
export async function provide(
  context: Context,
  ref: string,
  { upload: asked }: { upload?: boolean } = {},
): Promise<PulledImage> {
  const image = localImage(ref);
  if (image === undefined) return pull(context, ref);
  const { isHere } = await import("./source.ts");
  const here = asked !== false && (await isHere(image));
  const { apiUrl } = await context.client();
  if (shouldUpload({ asked, apiUrl, here })) return upload(context, image);
  try {
    return await pull(context, here ? absolute(image) : ref);
  } catch (error) {
    if (!shouldUploadAfter(toFailure(error), { asked, here })) throw error;
    const why = toFailure(error).error === "not_found" ? "has no such file" : "lets this token use no file";
    context.say(`The platform ${why} on its host, so the image is uploaded from this machine.`);
    return upload(context, image);
  }
}

/** Uploads an image and returns it. Ctrl-C ends the upload, and the next one continues. */
export async function upload(context: Context, image: LocalImage): Promise<PulledImage> {
  const { withSource } = await import("./source.ts");
  const client = await context.client();
  using stop = interruptible("The upload was interrupted.");
  const { signal } = stop;
  try {
    return await withSource(image, signal, (source) =>
      showing(context, formatLocal(image), (onProgress) => client.uploadImage(source, { onProgress, signal })),
    );
  } catch (error) {
    if (!signal.aborted) throw error;
    context.say("The upload was interrupted. Run the command again to continue.");
    throw signal.reason;
  }
}

/** A relative path is one of this directory, and not of the one that the platform was started in. */
function absolute(image: LocalImage): string {
  return formatLocal(image, image.kind === "docker-daemon" ? image.path : resolve(image.path));
}
