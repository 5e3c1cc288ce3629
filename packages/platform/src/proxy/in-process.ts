/** A proxy in the control plane's own process: the same messages as over a socket, without one. */
import { Fleet, type FleetOptions } from "./fleet.ts";
import type { ProxyHub } from "./hub.ts";

/** Connects a fleet to the hub. `close` ends its waiting requests and the connection. */
export function connectInProcess(hub: ProxyHub, options: Omit<FleetOptions, "link">): { fleet: Fleet; close(): void } {
  // Later, as a socket would: whoever sends is in the middle of something.
  const fleet: Fleet = new Fleet({
    ...options,
    link: { send: (message) => queueMicrotask(() => proxy.receive(message)) },
  });
  const proxy = hub.connect((message) => queueMicrotask(() => fleet.receive(message)));
  return {
    fleet,
    close() {
      fleet.close();
      proxy.close();
    },
  };
}
