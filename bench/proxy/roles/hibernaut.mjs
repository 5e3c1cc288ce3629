/**
 * The whole proxy, as `hibernaut proxy` runs it: table of machines, metrics, access log. Instead of the platform, this
 * file tells it about its one machine, which is always awake: the bench's app.
 */
import { once } from "node:events";
import { createServer } from "node:net";
import { readSettings } from "@hibernaut/settings";
import { coordinatorSocketPath } from "../../../packages/platform/src/proxy/coordinator-socket.ts";
import { exchangeLines } from "../../../packages/platform/src/proxy/message-lines.ts";
import { toWire } from "../../../packages/platform/src/proxy/messages.ts";
import { runProxyProcess } from "../../../packages/platform/src/proxy/run-proxy-process.ts";
import { policyOf } from "../../../packages/platform/src/proxy/service-policy.ts";
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
  settings,
  signal: new AbortController().signal,
  onReady: ({ url }) => ready(Number(new URL(url).port)),
});
