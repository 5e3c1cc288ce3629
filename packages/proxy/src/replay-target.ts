/** Where a request goes that an app sends on, and whether it may: a pure rule. */
import { type Destination, ProxyRefusal, type ReplayOrder } from "./contract.ts";
import type { ServicePolicy } from "./service-policy.ts";

/** What the rule looks at in a machine. */
interface ReplayMachine {
  id: string;
  policy: Pick<ServicePolicy, "replayFrom">;
}

/** The machines of all apps. */
interface ReplayDirectory {
  ofApp(app: string): { readonly all: readonly ReplayMachine[] };
  /** Finds a machine of the app by its whole id or its name. */
  find(app: string, word: string): ReplayMachine | undefined;
}

/**
 * Returns where a request of `fromApp` goes. An app may always send requests on to its own machines; another app has to
 * allow it, machine by machine.
 */
export function replayTarget(
  order: ReplayOrder,
  fromApp: string,
  machines: ReplayDirectory,
): Destination | ProxyRefusal {
  const app = order.app ?? fromApp;
  const sent = `App ${fromApp} sent this request on to`;
  const allows = ({ policy }: ReplayMachine) => app === fromApp || policy.replayFrom.includes(fromApp);
  const { all } = machines.ofApp(app);
  if (all.length === 0) {
    const message = `${sent} app ${app}, which does not exist or has no machine with a service. See: hibernaut machine list --app ${app}`;
    return new ProxyRefusal(502, "replay_unknown_app", message);
  }
  const notAllowed = `${sent} app ${app}, which does not allow it. Set replay_from = ["${fromApp}"] for the service in the app file of ${app}, and deploy it.`;
  if (!all.some(allows)) return new ProxyRefusal(502, "replay_not_allowed", notAllowed);
  if (order.machine === undefined) return { from: fromApp, app, machineId: undefined };
  const machine = machines.find(app, order.machine.toLowerCase());
  if (machine === undefined) {
    const message = `${sent} machine "${order.machine}" of app ${app}, which does not exist or has no service: it may have been destroyed. See: hibernaut machine list --app ${app}`;
    return new ProxyRefusal(502, "replay_unknown_machine", message);
  }
  return allows(machine)
    ? { from: fromApp, app, machineId: machine.id }
    : new ProxyRefusal(502, "replay_not_allowed", notAllowed);
}
