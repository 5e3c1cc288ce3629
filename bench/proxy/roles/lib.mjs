/** What all proxies of the bench that run on Node have in common: `node role.mjs <port of the app>`, and a line with their own port. */
import { once } from "node:events";

export const HOST = "127.0.0.1";
export const APP_PORT = Number(process.argv[2]);
/** More than the load has connections. */
export const MOST_CONNECTIONS = 1024;

/** @param {import("node:net").Server} server */
export async function listen(server) {
  server.listen(0, HOST);
  await once(server, "listening");
  const address = server.address();
  ready(typeof address === "object" && address !== null ? address.port : 0);
}

/**
 * Tells the bench where this proxy listens, and ends with it.
 *
 * @param {number} port
 */
export function ready(port) {
  process.stdin.resume().on("end", () => process.exit());
  console.log(port);
}
