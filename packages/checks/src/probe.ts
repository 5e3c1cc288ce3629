/** Probes a machine's port once. */
import { request } from "node:http";
import { connect } from "node:net";
import { messageOf } from "@hibernaut/lib/text";
import type { HealthCheck, ProbeResult } from "./policy.ts";

/** How many characters of a response to keep: enough to see what is wrong. */
const MAX_OUTPUT = 200;

/** Probes once, and never rejects. A status from 200 to 299 passes an HTTP check, an open port a TCP check. */
export async function probe(address: string, check: HealthCheck, signal: AbortSignal): Promise<ProbeResult> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(check.timeoutMs)]);
  try {
    return check.type === "tcp" ? await probeTcp(address, check, limit) : await probeHttp(address, check, limit);
  } catch (error) {
    const output = limit.aborted && !signal.aborted ? `no response within ${check.timeoutMs} ms` : messageOf(error);
    return { passed: false, output };
  }
}

function probeTcp(host: string, { port }: HealthCheck, signal: AbortSignal): Promise<ProbeResult> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, signal });
    socket.once("connect", () => {
      socket.destroy();
      resolve({ passed: true, output: `port ${port} is open` });
    });
    socket.once("error", reject);
  });
}

function probeHttp(host: string, check: HealthCheck, signal: AbortSignal): Promise<ProbeResult> {
  const { port, method, path, headers } = check;
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, method, path, headers, signal, agent: false }, (response) => {
      const status = response.statusCode ?? 0;
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        if (text.length < MAX_OUTPUT) text += chunk;
      });
      response.on("error", reject);
      response.on("end", () => {
        const passed = status >= 200 && status < 300;
        resolve({ passed, output: `${status} ${text.slice(0, MAX_OUTPUT)}`.trim() });
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}
