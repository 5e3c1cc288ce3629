/** What the bench's proxies on Node share: they run as `node role.mjs <the app's port>` and print their own port. */
import { once } from "node:events";

export const HOST = "127.0.0.1";
export const APP_PORT = Number(process.argv[2]);
/** More connections than the load has. */
export const MOST_CONNECTIONS = 1024;

/** @param {import("node:net").Server} server */
export async function listen(server) {
  server.listen(0, HOST);
  await once(server, "listening");
  const address = server.address();
  ready(typeof address === "object" && address !== null ? address.port : 0);
}

/**
 * Tells the bench where this proxy listens, and ends this process when the bench ends.
 *
 * @param {number} port
 */
export function ready(port) {
  process.stdin.resume().on("end", () => process.exit());
  console.log(port);
}
