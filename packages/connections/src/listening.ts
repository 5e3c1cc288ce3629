/** Explains why a port cannot be opened. */
import { readFile } from "node:fs/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { messageOf } from "@hibernaut/lib/text";
import type { Listen } from "@hibernaut/settings";

const FIRST_FREE_PORT = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
/** The kernel's default, for when it cannot be read. */
const USUAL_FIRST_FREE_PORT = 1024;

/**
 * Returns the error, `unavailable`, for a port that could not be opened.
 *
 * @param who the beginning of the sentence, e.g. `The proxy`
 * @param setting the variable that sets the port
 */
export async function cannotListen(
  who: string,
  { host, port }: Listen,
  setting: string,
  error: unknown,
): Promise<HibernautError> {
  const { code } = error as NodeJS.ErrnoException;
  const start = `${who} cannot listen on ${host}:${port}: `;
  if (code === "EADDRINUSE")
    return new HibernautError(
      "unavailable",
      `${start}another program is listening there. Set ${setting} to another host:port.`,
    );
  const firstFree = Number(await readFile(FIRST_FREE_PORT, "utf8").catch(() => USUAL_FIRST_FREE_PORT));
  if (code === "EACCES" && port < firstFree) {
    const out = `Give the service AmbientCapabilities=CAP_NET_BIND_SERVICE (docs/operate.md), or set ${setting} to port ${firstFree} or higher.`;
    return new HibernautError(
      "unavailable",
      `${start}ports below ${firstFree} need root or CAP_NET_BIND_SERVICE. ${out}`,
    );
  }
  return new HibernautError("unavailable", `${start}${code ?? messageOf(error)}. Set ${setting} to another host:port.`);
}
