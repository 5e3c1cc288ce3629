/** Asks the addresses of a name for a challenge, as a certificate authority would. */
import { randomBytes, X509Certificate } from "node:crypto";
import { request } from "node:http";
import { connect } from "node:tls";
import { within } from "@hibernaut/lib/async";
import { messageOf } from "@hibernaut/lib/text";
import { challengeCertificate } from "./acme-library.ts";
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

/** What is published for a name while its addresses are asked. */
interface Question {
  /** Returns whether an address gives the right answer, and what it says otherwise. */
  ask(address: string): Promise<Omit<Probed, "address">>;
  end(): Promise<void>;
}

/** Asks each address for a challenge, as an authority would, and compares the answers. Rejects only with the signal's reason. */
export async function probe(
  options: ProbeOptions,
  name: string,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<Probed[]> {
  if (addresses.length === 0) return [];
  // One for all addresses: the proxies show one certificate for a name at a time.
  const { ask, end } = await (options.challenge === "tls-alpn-01" ? overTls : overHttp)(options, name, signal);
  const answerOf = async (address: string): Promise<Probed> => {
    try {
      return { address, ...(await ask(address)) };
    } catch (error) {
      signal.throwIfAborted();
      return { address, ours: false, found: messageOf(error) || String((error as NodeJS.ErrnoException).code) };
    }
  };
  try {
    return await Promise.all(addresses.map(answerOf));
  } finally {
    await end();
  }
}

async function overHttp({ board, httpPort = 80 }: ProbeOptions, name: string, signal: AbortSignal): Promise<Question> {
  const token = `check-${randomBytes(16).toString("hex")}`;
  const answer = randomBytes(16).toString("hex");
  const path = `/.well-known/acme-challenge/${token}`;
  return {
    end: await board.publish(name, token, answer),
    async ask(address) {
      const { status, text } = await get({ address, port: httpPort, name, path }, signal);
      return { ours: status === 200 && text === answer, found: `the answer has status ${status}` };
    },
  };
}

async function overTls({ board, tlsPort = 443 }: ProbeOptions, name: string, signal: AbortSignal): Promise<Question> {
  const certificate = await challengeCertificate(name, randomBytes(16).toString("hex"));
  return {
    // An order may wait for the authority to see its own, which shows as well that the platform answers.
    end: await board.show(name, certificate, "under"),
    async ask(address) {
      const before = board.certificatesOf(name);
      const shown = await certificateAt({ address, port: tlsPort, name }, signal);
      // An order may have begun or ended meanwhile.
      const ours = [...before, ...board.certificatesOf(name)];
      return {
        ours: ours.some((one) => new X509Certificate(one).fingerprint256 === shown),
        found: "it shows another certificate",
      };
    },
  };
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
