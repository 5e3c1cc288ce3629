/** Our TCP ports: a machine that is always there, and no access log. */
import { ConnectionBudget, connectionLimits } from "@hibernaut/connections";
import { mostFiles } from "@hibernaut/lib/open-files";
import { DEFAULT_LIMITS } from "../../../packages/proxy/src/http/limits.ts";
import { Trust } from "../../../packages/proxy/src/http/trust.ts";
import { placesOf, TcpFronts } from "../../../packages/proxy/src/tcp/fronts.ts";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { APP_PORT, HOST, ready } from "./lib.mjs";

const lease = {
  ...{ address: HOST, port: APP_PORT, machineId: "m1", appName: "bench", connectDeadline: 0 },
  wake: /** @type {const} */ ({ kind: "running", durationMs: 0 }),
  upgraded() {},
  moved() {},
  wanted() {},
  quiet() {},
  release() {},
};
const port = await freePort();
const fronts = new TcpFronts({
  ...{ isStranger: () => false, reusePort: false, limits: DEFAULT_LIMITS },
  leases: { leaseNow: () => lease, waitForLease: async () => lease },
  ...{ balancers: new Trust([]), appFor: () => undefined, certificates: () => Promise.reject(new Error("no TLS")) },
  connections: new ConnectionBudget(connectionLimits(mostFiles())),
  onAccess() {},
  log: { warn: (_fields, message) => process.stderr.write(`${message}\n`) },
});
fronts.update(placesOf(new Map([[port, new Map([["bench", undefined]])]]), [HOST]));
while (fronts.ports.length === 0) await new Promise((resolve) => setImmediate(resolve));
ready(port);
