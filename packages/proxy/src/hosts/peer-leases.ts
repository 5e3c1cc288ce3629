/** Gives requests of other hosts' proxies to the machines of this host that they are for, and to no others. */
import { type Lease, type LeaseProvider, ProxyRefusal, type RequestHead } from "../contract.ts";
import type { LeaseBroker } from "../lease-broker.ts";
import { MoveWaits } from "./move-waits.ts";

interface PeerLeasesOptions {
  broker: Pick<LeaseBroker, "leaseNow" | "waitForLease" | "replayTo" | "hasMachine" | "isReady" | "wake">;
  /** Whether this host owns the machine, whether its proxies know the machine yet or not. */
  isOwn(id: string): boolean;
}

export class PeerLeases implements LeaseProvider {
  readonly #options: PeerLeasesOptions;
  readonly #arrivals: MoveWaits = new MoveWaits();

  constructor(options: PeerLeasesOptions) {
    this.#options = options;
  }

  /** The broker's table has changed. */
  tableChanged(): void {
    this.#arrivals.look();
  }

  /** Not asked: each request says which app and machine it is for. */
  route(hostname: string): string {
    throw new Error(`A request of another host for ${hostname} names no machine.`);
  }

  replayTo: LeaseProvider["replayTo"] = (order, fromApp) => this.#options.broker.replayTo(order, fromApp);

  /** Another host's machines of the app are busy: this one is to help them, and no request waits for it. */
  wake(id: string): void {
    this.#options.broker.wake(id);
  }

  leaseNow(app: string, request: RequestHead): Lease | undefined {
    const { broker, isOwn } = this.#options;
    const id = machineOf(request);
    if (broker.hasMachine(id)) {
      // The other host heard too late that it is being updated, stopped or put to sleep.
      if (request.to?.hasOthers === true && !broker.isReady(id)) throw notReadyRefusal(app, id);
      return broker.leaseNow(app, request);
    }
    if (isOwn(id)) return undefined;
    throw movedRefusal(app, id);
  }

  async waitForLease(app: string, request: RequestHead, signal: AbortSignal): Promise<Lease> {
    const { broker } = this.#options;
    const id = machineOf(request);
    try {
      if (!broker.hasMachine(id)) await this.#arrivals.wait(() => broker.hasMachine(id), signal);
      return broker.leaseNow(app, request) ?? (await broker.waitForLease(app, request, signal));
    } catch (error) {
      // It was destroyed or moved while the request waited. The other host knows, or hears soon, which of the two.
      throw error instanceof ProxyRefusal && !broker.hasMachine(id) ? movedRefusal(app, id) : error;
    }
  }
}

function machineOf({ to }: RequestHead): string {
  return to?.machineId ?? "";
}

/** For the other host's proxy, which has another machine for the request. */
function notReadyRefusal(app: string, id: string): ProxyRefusal {
  const message = `Machine ${id} of app ${app} has just stopped taking requests. Try again in a moment.`;
  return new ProxyRefusal(503, "not_running", message, { retryAfterS: 1 });
}

function movedRefusal(app: string, id: string): ProxyRefusal {
  const message = `Machine ${id} of app ${app} is moving to another host. Try again in a moment.`;
  return new ProxyRefusal(503, "moved", message, { retryAfterS: 1 });
}
