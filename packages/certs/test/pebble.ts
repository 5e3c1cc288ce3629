/** Debian's pebble, a certificate authority for tests, which `npm test` unpacks when it is missing. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { onTestFinished, vi } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { findTool } from "../../../scripts/lib/test-tools.mjs";
import { tempFolder } from "../../platform/test/helpers/temp.ts";

const PROGRAM = findTool("pebble");
/** Only a fault reaches it. */
const START_MS = 20_000;

export interface Pebble {
  /** The URL of its directory. */
  directory: string;
  /** The certificate of its own HTTPS server. */
  caFile: string;
  /** Fetches the root of the certificates that it issues. A restarted pebble has another one. */
  root(): Promise<string>;
  /** What it says of a certificate with this serial number: `Valid` or `Revoked`. */
  statusOf(serial: string): Promise<string>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface PebbleOptions {
  /** The name server that it asks. */
  dns: string;
  /** The port that stands for 80. */
  httpPort: number;
  /** The port that stands for 443. */
  tlsPort: number;
  /** How many percent of nonces it rejects. */
  nonceReject?: number;
}

/** Starts pebble; it ends with the test. */
export async function startPebble({ dns, httpPort, tlsPort, nonceReject = 0 }: PebbleOptions): Promise<Pebble> {
  const folder = await tempFolder("pebble");
  const [listen, management] = [await freePort(), await freePort()];
  const [caFile, key] = [join(folder, "pebble.crt"), join(folder, "pebble.key")];
  const config = join(folder, "pebble.json");
  const names = ["-subj", "/CN=pebble", "-addext", "subjectAltName=IP:127.0.0.1"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...names, "-keyout", key, "-out", caFile], { stdio: "ignore" });
  await writeFile(
    config,
    JSON.stringify({
      pebble: {
        listenAddress: `127.0.0.1:${listen}`,
        managementListenAddress: `127.0.0.1:${management}`,
        certificate: caFile,
        privateKey: key,
        httpPort,
        tlsPort,
        ocspResponderURL: "",
        externalAccountBindingRequired: false,
        certificateValidityPeriod: 90 * 86_400,
      },
    }),
  );
  let child: ChildProcess | undefined;
  const get = (url: string) => fetchText(url, readFileSync(caFile));
  const pebble: Pebble = {
    directory: `https://127.0.0.1:${listen}/dir`,
    caFile,
    root: () => get(`https://127.0.0.1:${management}/roots/0`),
    async statusOf(serial) {
      const found = await get(`https://127.0.0.1:${management}/cert-status-by-serial/${serial.toLowerCase()}`);
      return (JSON.parse(found) as { Status: string }).Status;
    },
    async start() {
      child = spawn(PROGRAM, ["-config", config, "-dnsserver", dns], {
        stdio: "ignore",
        env: { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: String(nonceReject) },
      });
      child.on("error", (error) =>
        console.error(`pebble does not start: ${error.message} (npm run setup -- --tests gets it)`),
      );
      await vi.waitFor(() => get(pebble.directory), { timeout: START_MS });
    },
    async stop() {
      const running = child;
      child = undefined;
      if (running === undefined || running.exitCode !== null) return;
      const ended = once(running, "exit");
      running.kill();
      await ended;
    },
  };
  onTestFinished(() => pebble.stop());
  await pebble.start();
  return pebble;
}

async function fetchText(url: string, ca: Buffer): Promise<string> {
  const [response] = (await once(request(url, { ca, agent: false }).end(), "response")) as [IncomingMessage];
  return text(response);
}
