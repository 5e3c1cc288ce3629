/** Reads the lines of a pull. */
import { ApiError } from "./error.ts";
import { refusalOf } from "./transport.ts";
import type { PulledImage, PullProgress } from "./types.ts";

/** Resolves with the image when the last line has it; rejects with an `ApiError` when it has an error, or never came. */
export async function readPull(
  lines: AsyncIterable<string>,
  onProgress: (progress: PullProgress) => void = () => {},
): Promise<PulledImage> {
  for await (const line of lines) {
    const event = JSON.parse(line) as PullProgress | ({ done: true } & PulledImage) | { error: string };
    // The reply's status was sent before anything went wrong.
    if ("error" in event) throw refusalOf(200, line);
    if (!("done" in event)) {
      onProgress(event);
      continue;
    }
    const { ref, digest, size_bytes } = event;
    return { ref, digest, size_bytes };
  }
  const message = "The platform ended before the image was ready. Ask again: what is downloaded is kept.";
  throw new ApiError({ code: "unavailable", message });
}
