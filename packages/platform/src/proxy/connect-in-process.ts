/** A proxy in the control plane's own process: the same messages as over a socket, without one. */
import { LeaseBroker, type LeaseBrokerOptions } from "./lease-broker.ts";
import type { ProxyCoordinator } from "./proxy-coordinator.ts";

/** Connects a broker to the coordinator. `close` ends its waiting requests and the connection. */
export function connectInProcess(
  coordinator: ProxyCoordinator,
  options: Omit<LeaseBrokerOptions, "link">,
): { broker: LeaseBroker; close(): void } {
  // Later, as a socket would: whoever sends is in the middle of something.
  const broker: LeaseBroker = new LeaseBroker({
    ...options,
    link: { send: (message) => queueMicrotask(() => proxy.receive(message)) },
  });
  const proxy = coordinator.connect((message) => queueMicrotask(() => broker.receive(message)));
  return {
    broker,
    close() {
      broker.close();
      proxy.close();
    },
  };
}
