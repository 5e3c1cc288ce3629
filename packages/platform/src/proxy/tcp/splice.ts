/** Moves bytes between a client and a machine, whose bytes come from an {@link Intake}. */
import type { Move } from "../http/tunnel.ts";
import type { Intake } from "../intake.ts";

/** How many bytes wait for a slow reader before its writer is paused. Less than a large piece, and every piece pauses it. */
export const HIGH_WATER_BYTES = 256 * 1024;

/** Moves the bytes of a tunnel. The machine's come from the intake that its socket was opened with. */
export function splice(intake: Intake): Move {
  return (client, upstream, { fromClient, fromUpstream }) => {
    client.on("data", (piece) => {
      fromClient(piece.length);
      if (!upstream.write(piece)) client.pause();
    });
    upstream.on("drain", () => client.resume());
    client.once("end", () => upstream.end());
    intake.start((piece) => {
      fromUpstream(piece.length);
      const more = client.write(piece);
      // Without anything left to write, the kernel or TLS has a copy.
      return { more, done: client.writableLength === 0 };
    });
    client.on("drain", () => upstream.resume());
    upstream.once("end", () => client.end());
    client.resume();
    upstream.resume();
  };
}
