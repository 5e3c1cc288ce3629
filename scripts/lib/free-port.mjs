/** Ports for servers that cannot choose their own, or whose port a client must know before they listen. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

/** Below are the ports of services that a host may run, and the last one that `fetch` refuses to speak to, 10080. */
const FIRST = 10_081;
/** Where Linux begins by default. */
const USUAL_EPHEMERAL = 32_768;
/** A host on which this many are taken in a row has none. */
const TRIES = 100;
/** What this process has been given before: the server may not listen yet. */
const given = new Set();

/**
 * The first of the ports that the kernel itself gives to connections and to servers that ask for any. One of those that is
 * free now may be taken by the next connection of any program.
 */
function firstEphemeral() {
  try {
    const first = Number(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").split(/\s/)[0]);
    return first > FIRST ? first : USUAL_EPHEMERAL;
  } catch {
    return USUAL_EPHEMERAL;
  }
}

/** @param {number} port @param {string} host */
async function isFree(port, host) {
  const server = createServer().listen(port, host);
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}

/**
 * Returns a TCP port on which nobody listens, and which the kernel gives to nobody.
 *
 * @param {string} [host] Where the server will listen.
 * @returns {Promise<number>}
 */
export async function freePort(host = "127.0.0.1") {
  const end = firstEphemeral();
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = FIRST + Math.floor(Math.random() * (end - FIRST));
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port, host)) return port;
  }
  throw new Error(`None of ${TRIES} ports from ${FIRST} to ${end - 1} is free on ${host}.`);
}
