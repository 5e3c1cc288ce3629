/** A slow network between the CLI and the platform. */
import { connect, createServer } from "node:net";

/** A connection to the platform that passes on little at a time, until it is opened. */
export async function throttled(apiUrl: string) {
  const port = Number(new URL(apiUrl).port);
  let bytes = 0;
  let waitMs = 5;
  const PIECE = 16 * 1024;
  const server = createServer((client) => {
    const platform = connect(port, "127.0.0.1");
    for (const socket of [client, platform]) socket.on("error", () => socket.destroy());
    platform.pipe(client);
    platform.on("close", () => client.destroy());
    client.on("close", () => platform.destroy());
    const passOn = async (chunk: Buffer) => {
      client.pause();
      for (let at = 0; at < chunk.length; at += PIECE) {
        bytes += Math.min(PIECE, chunk.length - at);
        platform.write(chunk.subarray(at, at + PIECE));
        if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
      client.resume();
    };
    client.on("data", (chunk: Buffer) => void passOn(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    bytes: () => bytes,
    open: () => void (waitMs = 0),
    close: () => void server.close(),
  };
}
