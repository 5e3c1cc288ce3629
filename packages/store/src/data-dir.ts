/** The data directory, as a running platform holds it. */
import { mkdir, realpath } from "node:fs/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { LONGEST_SOCKET, MAX_SOCKET_PATH } from "@hibernaut/settings";
import { lockDataDir } from "./lock.ts";

/**
 * Creates the data directory if needed, and locks it. Returns its real path: running guests are found by the paths in
 * their command lines, so the platform always uses the same name. Rejects with a HibernautError if the path is too long
 * for sockets, or if another platform holds the lock.
 */
export async function openDataDir(path: string): Promise<{ dataDir: string; release(): void }> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const dataDir = await realpath(path);
  if (Buffer.byteLength(dataDir + LONGEST_SOCKET) > MAX_SOCKET_PATH) {
    const most = MAX_SOCKET_PATH - LONGEST_SOCKET.length;
    throw new HibernautError(
      "invalid_argument",
      `The path ${dataDir} is too long for sockets: HIBERNAUT_DATA_DIR may have up to ${most} bytes.`,
    );
  }
  const lock = lockDataDir(dataDir);
  return { dataDir, release: () => lock.release() };
}
