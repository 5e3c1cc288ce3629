/** A process with few descriptors that offers an app at ports for HTTP, HTTPS and TCP. Started by crowd.test.ts. */
import { closeSync, openSync } from "node:fs";
import { createProxyServer } from "@hibernaut/proxy/http";
import { Registry } from "prom-client";
import type { Lease, LeaseProvider } from "../../proxy/src/contract.ts";
import { DEFAULT_LIMITS } from "../../proxy/src/http/limits.ts";
import { Trust } from "../../proxy/src/http/trust.ts";
import { placesOf, TcpFronts } from "../../proxy/src/tcp/fronts.ts";
import { openConnections } from "../src/open.ts";

const [appPort = "", tcpPort = "", folder = ""] = process.argv.slice(2);
const HOST = "127.0.0.1";

const lease = (): Lease => ({
  ...{ address: HOST, port: Number(appPort), machineId: "m1", appName: "shop", connectDeadline: 0 },
  wake: { kind: "running", durationMs: 0 },
  release() {},
});
const leases: LeaseProvider = {
  route: () => "shop",
  leaseNow: lease,
  waitForLease: async () => lease(),
  replayTo: () => ({ from: "shop", app: "shop", machineId: undefined }),
};
const connections = openConnections({ connectionsPerAddress: 0 }, new Registry());
const plain = createProxyServer({ leases, connections });
const secure = createProxyServer({ leases, connections, tls: { folder } });
const fronts = new TcpFronts({
  ...{ isStranger: () => false, reusePort: false, limits: DEFAULT_LIMITS, leases, connections },
  ...{ balancers: new Trust([]), appFor: () => undefined, certificates: () => Promise.reject(new Error("none")) },
  onAccess() {},
  log: { warn: (_fields, message) => void process.send?.({ warned: message }) },
});
const ports = {
  http: (await plain.listen({ host: HOST, port: 0 })).port,
  https: (await secure.listen({ host: HOST, port: 0 })).port,
  tcp: Number(tcpPort),
};
fronts.update(placesOf(new Map([[ports.tcp, new Map([["shop", undefined]])]]), [HOST]));
while (fronts.ports.length === 0) await new Promise((resolve) => setImmediate(resolve));

/** Whether the platform could still open what it needs: as many files as were kept back for it. */
process.on("message", (files: number) => {
  const opened: number[] = [];
  let error = "";
  try {
    while (opened.length < files) opened.push(openSync("/proc/self/stat", "r"));
  } catch (failed) {
    error = String(failed);
  }
  for (const file of opened) closeSync(file);
  process.send?.({ error, counts: connections.counts, clients: connections.limits.clients });
});
process.send?.({ ports });
