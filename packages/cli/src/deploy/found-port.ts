/** Finds out where an app listens whose app file names no port, and writes it into the file. */
import { setTimeout as delay } from "node:timers/promises";
import type { Machine } from "@hibernaut/client";
import type { AppFile } from "../appfile/model.ts";
import { readNamed } from "../appfile/named.ts";
import { openService, tellingPort, withPort } from "../appfile/open-port.ts";
import { rewrite } from "../appfile/rewrite.ts";
import type { Context } from "../context.ts";
import { CliError, toFailure } from "../failure.ts";
import { interruptible } from "../interrupting.ts";
import { groupOf } from "./plan.ts";

/** What a program listens on that takes connections at every address of its machine. */
const ANYWHERE: readonly string[] = ["0.0.0.0", "::", "::ffff:0.0.0.0"];

/** Ends a release whose app listens on another port than was assumed. The next one has that port. */
export class FoundPort extends CliError {
  readonly port: number;

  constructor(port: number) {
    super("failed_precondition", `The app listens on port ${port}, which the next release has.`);
    this.port = port;
  }
}

/** Linux gives an app that names no port one from here on, and another at each start. */
const FIRST_RANDOM_PORT = 32_768;

/**
 * What programs listen on for their operators, or for a debugger that may do anything with them. An app may open such a port
 * before its own, and a service's port is open to everybody.
 */
const NOT_FOR_VISITORS: ReadonlySet<number> = new Set([
  22, // SSH
  2019, // the admin API of Caddy
  5005, // the debugger of Java
  5678, // the debugger of Python
  6060, // the profiler of Go
  9090, // Prometheus, and metrics of many apps
  9091, // Prometheus' Pushgateway, and metrics
  9100, // Prometheus' node_exporter, and metrics
  9229, // the debugger of Node
  9464, // metrics of OpenTelemetry
  9901, // the admin API of Envoy
]);

/** An app that opens its own port after another may need a few seconds for that: the port must be the only one for this long. */
const ONLY_FOR_MS = 5_000;

/**
 * The port of the app's machines, for a file that names none: an earlier deploy may have found it, and the file may be
 * another copy. Undefined if the file names one, or the machines do not agree on one.
 */
export async function portOfMachines(context: Context, file: AppFile): Promise<number | undefined> {
  const service = openService(file);
  if (service === undefined) return undefined;
  const machines = await machinesOf(context);
  const own = machines.filter((machine) => service.groups.includes(groupOf(machine) ?? ""));
  const ports = new Set(own.flatMap(({ config }) => (config.services ?? []).map((one) => one.internal_port)));
  return ports.size === 1 ? [...ports][0] : undefined;
}

async function machinesOf(context: Context): Promise<Machine[]> {
  try {
    return await (await context.client()).listMachines(context.app);
  } catch (error) {
    // The deploy creates it.
    if (toFailure(error).error === "not_found") return [];
    throw error;
  }
}

/**
 * After a machine turned out not to work: the port on which its app listens instead, if that is beyond doubt, which is
 * then written into the app file. Undefined otherwise. Once a release of the app was complete, its port is not a guess
 * any more.
 */
export async function foundPort(
  named: Context,
  machineId: string,
  config: string | undefined,
  onlyForMs = ONLY_FOR_MS,
): Promise<number | undefined> {
  const { path, name, file } = await readNamed(config);
  if (file === undefined || openService(file) === undefined) return undefined;
  const context = named.preferring(file.app);
  const client = await context.client();
  const look = async () => onlyPort(await client.getMachine(context.app, machineId));
  const port = await look();
  if (port === undefined) return undefined;
  if (await hasWorked(context)) return undefined;
  using stop = interruptible("The deploy was interrupted.");
  await delay(onlyForMs, undefined, { signal: stop.signal }).catch(() => stop.signal.throwIfAborted());
  if ((await look()) !== port) return undefined;
  stop.signal.throwIfAborted();
  context.say(
    `The app listens on port ${port}, and ${name} names no port. ${write(path, port)} That port is open to everybody at the app's hostname. Deploying again.`,
  );
  return port;
}

/** How many releases the platform lists at most. */
const MOST_RELEASES = 100;

/** Whether a release of the app was complete, of those that are known. */
export async function hasWorked(context: Context): Promise<boolean> {
  const releases = await (await context.client()).listReleases(context.app, { limit: MOST_RELEASES });
  return releases.some(({ status }) => status === "complete");
}

/** The one port of all addresses on which a machine's app listens where requests do not arrive. Pure. */
export function onlyPort({ listening = [] }: Pick<Machine, "listening">): number | undefined {
  const [port, ...others] = new Set(listening.map((listener) => listener.port));
  const isOpen = listening.some(({ address }) => ANYWHERE.includes(address));
  if (!isOpen || port === undefined || others.length > 0) return undefined;
  return port < FIRST_RANDOM_PORT && !NOT_FOR_VISITORS.has(port) ? port : undefined;
}

/** Writes the port into the file. Says what it did, or what is left to do: the machines have the port either way. */
function write(path: string, port: number): string {
  const line = `\`internal_port = ${port}\``;
  try {
    let told = "";
    const written = rewrite(path, (text) => {
      if (tellingPort(text, port) !== text) told = ` and \`PORT = "${port}"\``;
      return withPort(text, port);
    });
    if (written !== undefined) return `Wrote ${line}${told} into it.`;
  } catch {
    // It can be read, and not be written, or is not UTF-8: as below.
  }
  return `It could not be written into the file: add ${line} to the service yourself.`;
}
