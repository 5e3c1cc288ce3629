/** Asks an address of a name for a challenge, as a certificate authority would. */
import { randomBytes, X509Certificate } from "node:crypto";
import { request } from "node:http";
import { connect } from "node:tls";
import { within } from "../lib/async.ts";
import { messageOf } from "../lib/text.ts";
import { challengeCertificate } from "./alpn-certificate.ts";
import type { ChallengeBoard } from "./challenges.ts";
import type { HostChallenge } from "./contract.ts";

/** How long each look may take, in milliseconds: someone waits for it. */
export const LOOK_MS = 5_000;
/** As much of an answer as is compared: those that are ours are short. Bytes. */
const MOST_BYTES = 256;
/** What an authority offers to speak over TLS (RFC 8737). */
const ALPN_PROTOCOL = "acme-tls/1";

export interface ProbeOptions {
  board: ChallengeBoard;
  /** How hostnames are proven. */
  challenge: HostChallenge;
  /** For tests: the ports that stand for 80 and 443. */
  httpPort?: number;
  tlsPort?: number;
}

/** What was found at an address: this platform, or something else. */
interface Probed {
  address: string;
  ours: boolean;
  found: string;
}

/** Asks for a challenge, as an authority would, and compares the answer. Rejects only with the signal's reason. */
export function probe(options: ProbeOptions, name: string, address: string, signal: AbortSignal): Promise<Probed> {
  const ask = options.challenge === "tls-alpn-01" ? askTls : askHttp;
  return ask(options, name, address, signal);
}

async function askHttp({ board, httpPort = 80 }: ProbeOptions, name: string, address: string, signal: AbortSignal) {
  const token = `check-${randomBytes(16).toString("hex")}`;
  const answer = randomBytes(16).toString("hex");
  const end = await board.publish(name, token, answer);
  try {
    const path = `/.well-known/acme-challenge/${token}`;
    const { status, text } = await get({ address, port: httpPort, name, path }, signal);
    return { address, ours: status === 200 && text === answer, found: `the answer has status ${status}` };
  } catch (error) {
    signal.throwIfAborted();
    return { address, ours: false, found: messageOf(error) || String((error as NodeJS.ErrnoException).code) };
  } finally {
    await end();
  }
}

async function askTls({ board, tlsPort = 443 }: ProbeOptions, name: string, address: string, signal: AbortSignal) {
  const certificate = await challengeCertificate(name, randomBytes(16).toString("hex"));
  const end = await board.show(name, certificate);
  try {
    const shown = await certificateAt({ address, port: tlsPort, name }, signal);
    const ours = shown === new X509Certificate(certificate).fingerprint256;
    return { address, ours, found: "it shows another certificate" };
  } catch (error) {
    signal.throwIfAborted();
    return { address, ours: false, found: messageOf(error) || String((error as NodeJS.ErrnoException).code) };
  } finally {
    await end();
  }
}

/** The fingerprint of what an authority is shown. */
function certificateAt(
  { address, port, name }: { address: string; port: number; name: string },
  signal: AbortSignal,
): Promise<string> {
  const limit = within(signal, LOOK_MS, `https://${name}/ at ${address}`);
  return new Promise((resolve, reject) => {
    const options = { host: address, port, servername: name, ALPNProtocols: [ALPN_PROTOCOL] };
    // The certificate is signed by itself. What counts is which one it is.
    const socket = connect({ ...options, rejectUnauthorized: false });
    const late = () => socket.destroy(limit.reason as Error);
    limit.addEventListener("abort", late, { once: true });
    socket.once("secureConnect", () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.once("error", reject).once("close", () => {
      limit.removeEventListener("abort", late);
      reject(new Error("the connection was closed"));
    });
  });
}

function get(
  { address, port, name, path }: { address: string; port: number; name: string; path: string },
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  const limit = within(signal, LOOK_MS, `http://${name}/ at ${address}`);
  return new Promise((resolve, reject) => {
    const headers = { host: name, connection: "close" };
    const sent = request({ host: address, port, path, headers, agent: false, signal: limit }, (response) => {
      let text = "";
      const done = () => resolve({ status: response.statusCode ?? 0, text });
      response.setEncoding("latin1").on("data", (chunk: string) => {
        text += chunk;
        if (text.length < MOST_BYTES) return;
        done();
        response.destroy();
      });
      response.on("end", done).on("error", reject);
    });
    sent.on("error", (error) => reject(limit.aborted ? (limit.reason as Error) : error)).end();
  });
}
