/** Why no machine takes a request, as responses. Pure. */
import { DRAIN_RETRY_S } from "@hibernaut/domain/drain";
import type { MachineState } from "@hibernaut/domain/machine";
import { withoutPeriod } from "@hibernaut/lib/text";
import { ProxyRefusal } from "./contract.ts";
import { hostUnreachable } from "./http/refusals.ts";
import { FAILED_REST_MS, type RoutedMachine, type WakeRefusal } from "./routed-machine.ts";

/** Another machine of the app may fall asleep in the meantime. */
const OVER_QUOTA_RETRY_S = 2;

/** No app answers for the hostname. */
export function unknownHostRefusal(hostname: string): ProxyRefusal {
  const message = `No app answers for ${hostname}: either no app has this hostname, or the app has no machine with a service.`;
  return new ProxyRefusal(404, "unknown_host", message);
}

/** The app wants its requests over HTTPS. The method stays the same, unlike with 301. */
export function httpsRedirect(app: string, location: string): ProxyRefusal {
  const message = `App ${app} is served over HTTPS (force_https). Use ${location}`;
  return new ProxyRefusal(308, "https_required", message, { location });
}

/** A browser's request would wait for a cold start. It is shown a page that asks again. */
export function wakingRefusal(app: string): ProxyRefusal {
  return new ProxyRefusal(503, "waking", `A machine of app ${app} is starting. Try again in a moment.`, { page: true });
}

/** A request asks for a machine that the app does not have. */
export function unknownMachineRefusal(app: string, word: string): ProxyRefusal {
  const message = `App ${app} has no machine "${word}" with a service: it may have been destroyed. Use the whole ID or the name of a machine. See: hibernaut machine list --app ${app}`;
  return new ProxyRefusal(404, "unknown_machine", message);
}

/** A request asks for a port of a machine at which it may not choose the machine. */
export function unknownPortRefusal(app: string, id: string, port: number): ProxyRefusal {
  const message = `Machine ${id} of app ${app} has no service on port ${port} with machine_hostnames. Set machine_hostnames = true for the service with that port in the app file, and deploy it.`;
  return new ProxyRefusal(404, "unknown_port", message);
}

/** The hostname and the headers of a request name different machines. */
export function conflictRefusal(app: string): ProxyRefusal {
  const message = `The request names two machines of app ${app}. Name one: in the hostname, in Hibernaut-Machine or in fly-force-instance-id.`;
  return new ProxyRefusal(400, "machine_conflict", message);
}

/** Only this machine will do, and its owner cordoned it. */
export function machineCordonedRefusal(app: string, id: string): ProxyRefusal {
  const message = `Machine ${id} of app ${app} is cordoned, so requests neither reach nor wake it: hibernaut machine uncordon ${id} --app ${app}`;
  return new ProxyRefusal(503, "machine_cordoned", message);
}

/** Only this machine will do. It cannot take the request, and is not on its way. */
export function chosenMachineRefusal(app: string, machine: RoutedMachine): ProxyRefusal {
  const { id, state } = machine.row;
  if (state === "destroying") return unknownMachineRefusal(app, id);
  if (!machine.reachable || machine.crashing || state === "failed") return noMachineRefusal(app, [machine]);
  const message = `Machine ${id} of app ${app} is not running, and requests do not start it (auto_start_machines is off). Start it: hibernaut machine start ${id} --app ${app}`;
  return new ProxyRefusal(503, "not_running", message, { retryAfterS: 5 });
}

/** A machine would have to be started, and the platform drains. */
export function drainingRefusal(app: string): ProxyRefusal {
  const message = `No machine of app ${app} is running, and none is started at the moment: the server is being shut down or serviced. Try again in a while.`;
  return new ProxyRefusal(503, "draining", message, { retryAfterS: DRAIN_RETRY_S });
}

/** The platform was asked to wake the machine, and refused. */
export function wakeRefusal(app: string, id: string, { message, full, overQuota }: WakeRefusal): ProxyRefusal {
  if (overQuota === true) return new ProxyRefusal(503, "over_quota", message, { retryAfterS: OVER_QUOTA_RETRY_S });
  if (full === undefined) return couldNotStart(app, id, message);
  return new ProxyRefusal(503, "host_full", message, full);
}

/** None of the app's machines, except those already tried, can take a request, and none is on its way. */
export function noMachineRefusal(app: string, machines: readonly RoutedMachine[]): ProxyRefusal {
  // Requests do not reach a machine if its host is away, on whichever host, or if its app listens in the wrong place.
  const away = machines.find(({ row }) => row.remote?.peer === null);
  if (away?.row.remote !== undefined) return hostUnreachable(app, away.row.remote.host);
  const unreachable = machines.find((machine) => !machine.reachable);
  if (unreachable !== undefined) return unreachableRefusal(app, unreachable);
  const crashing = machines.find((machine) => machine.crashing);
  if (crashing !== undefined) return crashRefusal(app, crashing);
  const failed = machines.find(({ row }) => row.state === "failed");
  if (failed !== undefined) return failedRefusal(app, failed);
  if (machines.length === 0)
    return new ProxyRefusal(502, "no_machine_left", `No machine of app ${app} could be reached.`);
  const hint = cordonHint(app, machines);
  if (hint !== "") return new ProxyRefusal(503, "cordoned", `No machine of app ${app} is running.${hint}`);
  const message = `No machine of app ${app} is running, and requests do not start one (auto_start_machines is off).`;
  return new ProxyRefusal(503, "not_running", message, { retryAfterS: 5 });
}

/** Why requests wait in vain for machines that their owner has cordoned; empty if there are none. */
export function cordonHint(app: string, machines: readonly RoutedMachine[]): string {
  const cordoned = machines.find(({ row, policy }) => row.cordoned && !policy.worker);
  if (cordoned === undefined) return "";
  return ` Requests neither reach nor wake machine ${cordoned.id}, which is cordoned: hibernaut machine uncordon ${cordoned.id} --app ${app}`;
}

function failedRefusal(app: string, { row: { id, reason } }: RoutedMachine): ProxyRefusal {
  return couldNotStart(app, id, reason ?? "see its events");
}

function couldNotStart(app: string, id: string, reason: string): ProxyRefusal {
  const message = `Machine ${id} of app ${app} could not be started: ${withoutPeriod(reason)}.`;
  return new ProxyRefusal(503, "machine_failed", message, { retryAfterS: FAILED_REST_MS / 1000 });
}

function crashRefusal(app: string, machine: RoutedMachine): ProxyRefusal {
  const { id, crash, state } = machine.row;
  const retryAfterS = machine.retryAfterS();
  const next = nextStart(state, crash?.retryAt ?? null, retryAfterS);
  if (crash?.lost === true) {
    const lost = `The virtual machine of machine ${id} of app ${app} ended several times in a row: ${withoutPeriod(crash.reason)}. ${next} See: hibernaut machine events ${id} --app ${app}`;
    return new ProxyRefusal(503, "machine_failed", lost, { retryAfterS });
  }
  const message = `App ${app} crashes: on machine ${id}, ${crash?.reason}. ${next} See its logs: hibernaut logs --app ${app}`;
  return new ProxyRefusal(503, "app_crashed", message, { retryAfterS });
}

function nextStart(state: MachineState, retryAt: string | null, inS: number): string {
  if (retryAt === null) return "It is not restarted automatically.";
  return state === "starting" ? "It is being restarted." : `It is restarted in ${inS} s.`;
}

function unreachableRefusal(app: string, { row: { id, unreachable } }: RoutedMachine): ProxyRefusal {
  const message = `App ${app} cannot be reached: machine ${id} is running, but ${unreachable}. See: hibernaut machine status ${id} --app ${app}`;
  return new ProxyRefusal(502, "upstream_unreachable", message);
}
