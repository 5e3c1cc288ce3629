/** Reads the replies of moves and of drains of hosts. */
import { ApiError } from "./error.ts";
import { errorOf } from "./transport.ts";
import type { DrainedHost, HostDrainProgress, MoveProgress } from "./types.ts";

/** Resolves when the machine is on the other host. Rejects with an `ApiError` when the reply ends otherwise. */
export async function readMove(
  lines: AsyncIterable<string>,
  onProgress: (progress: MoveProgress) => void = () => {},
): Promise<{ host: string }> {
  for await (const line of lines) {
    const event = JSON.parse(line) as MoveProgress | { error: string };
    // The status was sent before anything went wrong.
    if ("error" in event) throw errorOf(200, line);
    onProgress(event);
    if (event.step === "done") return { host: event.host };
  }
  const message =
    "The platform ended during the move. The machine is on one of the two hosts: see `hibernaut machine list`.";
  throw new ApiError({ code: "unavailable", message });
}

/** Resolves with what moved and what stayed. Rejects with an `ApiError` when the reply ends otherwise. */
export async function readHostDrain(
  lines: AsyncIterable<string>,
  onProgress: (progress: HostDrainProgress) => void = () => {},
): Promise<DrainedHost> {
  for await (const line of lines) {
    const event = JSON.parse(line) as HostDrainProgress | ({ done: true } & DrainedHost) | { error: string };
    if ("error" in event) throw errorOf(200, line);
    if (!("done" in event)) {
      onProgress(event);
      continue;
    }
    const { moved, stayed } = event;
    return { moved, stayed };
  }
  const message = "The platform ended during the drain. Run it again: machines that have moved stay where they are.";
  throw new ApiError({ code: "unavailable", message });
}
