/** Reads the reply of a pull. */
import { ApiError } from "./error.ts";
import { errorOf } from "./transport.ts";
import type { PulledImage, PullProgress } from "./types.ts";

/**
 * Resolves with the image that the last line names. Rejects with an `ApiError` when that line is an error, or never
 * comes.
 */
export async function readPull(
  lines: AsyncIterable<string>,
  onProgress: (progress: PullProgress) => void = () => {},
): Promise<PulledImage> {
  for await (const line of lines) {
    const event = JSON.parse(line) as PullProgress | ({ done: true } & PulledImage) | { error: string };
    // The status was sent before anything went wrong.
    if ("error" in event) throw errorOf(200, line);
    if (!("done" in event)) {
      onProgress(event);
      continue;
    }
    const { ref, digest, size_bytes } = event;
    return { ref, digest, size_bytes };
  }
  const message = "The platform ended before the image was ready. Pull it again: what was downloaded is kept.";
  throw new ApiError({ code: "unavailable", message });
}
