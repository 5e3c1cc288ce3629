/** A lock that all programs of a host see, for what they share without knowing of each other. */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** Work under such a lock takes a second at most. A process that holds it for longer hangs, and must not hold up others. */
const PATIENCE_MS = 15_000;
const RETRY_MS = 20;

/**
 * Runs `work` while no other process of this network namespace runs something under the same name. After 15 s it runs
 * anyway. The lock is a Unix socket without a file: the kernel releases it with the process, whatever ends that.
 */
export async function withHostLock<T>(name: string, work: () => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
  const end = performance.now() + patienceMs;
  let held = await hold(name);
  while (held === undefined && performance.now() < end) {
    await delay(RETRY_MS);
    held = await hold(name);
  }
  try {
    return await work();
  } finally {
    held?.close();
  }
}

async function hold(name: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  server.listen(`\0${name}`);
  try {
    await once(server, "listening");
    return server.unref();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return undefined;
    throw error;
  }
}
