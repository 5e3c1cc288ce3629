/**
 * The whole proxy, as `hibernaut proxy` runs it: table of machines, metrics, access log. Instead of the platform, this
 * file tells it about its one machine, which is always awake: the bench's app.
 */
import { once } from "node:events";
import { createServer } from "node:net";
import { runProxyProcess } from "@hibernaut/proxy/run-proxy-process";
import { readSettings } from "@hibernaut/settings";
import { coordinatorSocketPath } from "../../../packages/proxy/src/coordinator-socket.ts";
import { exchangeLines } from "../../../packages/proxy/src/message-lines.ts";
import { toWire } from "../../../packages/proxy/src/messages.ts";
import { policyOf } from "../../../packages/proxy/src/service-policy.ts";
import { APP_PORT, HOST, ready } from "./lib.mjs";

const settings = readSettings({ ...process.env, HIBERNAUT_PROXY_LISTEN: `${HOST}:0` });
const policy = policyOf({ image: "", services: [{ internal_port: APP_PORT }] });
if (policy === undefined) throw new Error("A machine with a service must have a policy.");
const machine = {
  ...{ id: "m1", app: "bench", address: HOST, policy: toWire(policy) },
  ...{ healthy: true, reason: null, crash: null, unreachable: null },
  state: "running",
  lastBoot: { kind: "cold", at: new Date().toISOString() },
};
const coordinator = createServer((socket) => {
  const send = exchangeLines(socket, () => {});
  send({
    kind: "table",
    machines: [machine],
    hostnames: {},
    suffixes: ["localhost"],
    connectionsSurvive: true,
    draining: false,
  });
});
coordinator.listen(coordinatorSocketPath(settings.dataDir));
await once(coordinator, "listening");
await runProxyProcess({
  version: "0.1.0",
  settings,
  signal: new AbortController().signal,
  onReady: ({ url }) => ready(Number(new URL(url).port)),
});
