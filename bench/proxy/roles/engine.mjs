/** Our HTTP engine alone: a machine that is always there, and no access log. */
import { createProxyServer } from "@hibernaut/proxy/http";
import { APP_PORT, HOST, ready } from "./lib.mjs";

const lease = {
  ...{ address: HOST, port: APP_PORT, machineId: "m1", appName: "bench", connectDeadline: 0 },
  wake: /** @type {const} */ ({ kind: "running", durationMs: 0 }),
  release() {},
};
const proxy = createProxyServer({
  leases: {
    route: () => "bench",
    leaseNow: () => lease,
    waitForLease: async () => lease,
    replayTo: () => ({ from: "bench", app: "bench", machineId: undefined }),
  },
});
ready((await proxy.listen({ host: HOST, port: 0 })).port);
