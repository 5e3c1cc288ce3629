/** Machines of the counter's image, as the benches use them. */
import { join } from "node:path";

/** In the form of the API. */
export const IMAGE = `oci:${join(import.meta.dirname, "../../.build/counter")}:latest`;
/** Where the counter listens in its machine. */
export const PORT = 8080;
export const MEMORY_MB = 256;

/**
 * Creates a machine in an app that exists, and waits until it runs. Requests wake it; only {@link to} lets it sleep.
 *
 * @param {import("../../scripts/lib/platform.mjs").Platform["call"]} call
 * @param {string} app
 * @param {{ service?: object, host?: string, checks?: object }} [options] `service` is added to its service, and `host` is where it is.
 */
export async function createCounter(call, app, { service = {}, host, checks = {} } = {}) {
  const services = [{ internal_port: PORT, autostop: "off", autostart: true, ...service }];
  const config = { image: IMAGE, guest: { cpus: 1, memory_mb: MEMORY_MB }, services, checks };
  const machine = await call("POST", `/apps/${app}/machines`, { config, ...(host !== undefined && { host }) });
  const path = `/apps/${app}/machines/${machine.machine_id}`;
  /** @param {"suspend" | "stop"} action @param {"suspended" | "stopped"} state */
  const to = async (action, state) => {
    await call("POST", `${path}/${action}`);
    await call("GET", `${path}/wait?state=${state}`);
  };
  await call("GET", `${path}/wait?timeout=120`);
  const { machine_id: id, private_address: address } = machine;
  return { id: String(id), address: String(address), path, config, to };
}
