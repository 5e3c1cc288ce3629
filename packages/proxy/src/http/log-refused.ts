/** The line of the access log for a request that never became an exchange. */
import type { ProxyRefusal } from "../contract.ts";
import type { Engine } from "./engine.ts";
import type { Origin } from "./heads.ts";

/** Logs a request whose head was refused. Nothing in the head can be believed, so the log contains nothing of it. */
export function logRefused(engine: Engine, origin: Origin, refused: ProxyRefusal, bytesOut: number): void {
  engine.onAccess({
    time: Date.now(),
    requestId: origin.requestId,
    ...{ method: "", host: "", target: "", httpVersion: "" },
    clientAddress: origin.clientAddress,
    status: refused.status,
    ...{ bytesIn: 0, bytesOut, durationMs: 0 },
    ...{ wake: undefined, machineId: undefined, appName: undefined },
    error: refused.code,
  });
}
