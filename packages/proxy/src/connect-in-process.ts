/** Connects a proxy in the platform's own process: the same messages as over a socket, without the socket. */
import { LeaseBroker, type LeaseBrokerOptions } from "./lease-broker.ts";
import type { ProxyCoordinator } from "./proxy-coordinator.ts";

/** A proxy in the platform's own process. */
export interface InProcessProxy {
  broker: LeaseBroker;
  /** For tests: resolves once all loads are reported and all messages, with those that they caused, have arrived. */
  settled(): Promise<void>;
  /** Refuses the requests that wait, and disconnects the proxy. */
  close(): void;
}

/** Connects a new broker to the coordinator. */
export function connectInProcess(
  coordinator: ProxyCoordinator,
  options: Omit<LeaseBrokerOptions, "link"> & {
    /** Whether it knows the machines of other hosts. By default, it does. */
    everywhere?: boolean;
    /** Whether visitors reach it. By default, they do. */
    forVisitors?: boolean;
  },
): InProcessProxy {
  const inFlight = new Set<() => void>();
  /** Delivers later, as a socket would: the sender is in the middle of something. */
  const deliver = <T>(receive: (message: T) => void, message: T) => {
    const arrive = () => {
      inFlight.delete(arrive);
      receive(message);
    };
    inFlight.add(arrive);
    queueMicrotask(arrive);
  };
  const broker: LeaseBroker = new LeaseBroker({
    ...options,
    link: { send: (message) => deliver(proxy.receive, message) },
  });
  const { everywhere = true, forVisitors = true } = options;
  const proxy = coordinator.connect((message) => deliver((arrived) => broker.receive(arrived), message), {
    everywhere,
    forVisitors,
  });
  return {
    broker,
    async settled() {
      do {
        broker.flushReports();
        await Promise.resolve();
      } while (inFlight.size > 0);
    },
    close() {
      broker.close();
      proxy.close();
    },
  };
}
