/** Moves bytes between a client and a machine, whose bytes come from an {@link Intake}. */
import { Outbox } from "../http/outbox.ts";
import type { Move } from "../http/tunnel.ts";
import type { Intake } from "../intake.ts";

/** How many bytes wait for a slow reader before its writer is paused. Less than a large piece, and every piece pauses it. */
export const HIGH_WATER_BYTES = 256 * 1024;
/** Pieces up to this many bytes are copied, and leave with those of other connections. Larger ones leave at once. */
const COPY_UP_TO = 4 * 1024;

/** Moves the bytes of a tunnel. The machine's come from the intake that its socket was opened with. */
export function splice(intake: Intake): Move {
  return (client, upstream, { fromClient, fromUpstream }) => {
    const bufferBytes = HIGH_WATER_BYTES;
    const toApp = new Outbox(upstream, { bufferBytes, to: "app", onRoom: () => client.resume() });
    const toClient = new Outbox(client, { bufferBytes, to: "client", onRoom: () => upstream.resume() });
    client.on("data", (piece: Buffer) => {
      fromClient(piece.length);
      if (!toApp.push(piece)) client.pause();
    });
    client.once("end", () => {
      toApp.flush();
      upstream.end();
    });
    intake.start((piece) => {
      fromUpstream(piece.length);
      if (piece.length <= COPY_UP_TO) return { more: toClient.push(Buffer.from(piece)), done: true };
      toClient.push(piece);
      toClient.flush();
      // Without anything left to write, the kernel or TLS has a copy.
      return { more: !toClient.full, done: client.writableLength === 0 };
    });
    upstream.once("end", () => {
      toClient.flush();
      client.end();
    });
    client.resume();
    upstream.resume();
  };
}

/** Moves the bytes of a tunnel whose other side is not read by an {@link Intake}. */
export const pipe: Move = (client, upstream, { fromClient, fromUpstream }) => {
  client.on("data", (piece: Buffer) => fromClient(piece.length));
  upstream.on("data", (piece: Buffer) => fromUpstream(piece.length));
  client.pipe(upstream);
  upstream.pipe(client);
};
