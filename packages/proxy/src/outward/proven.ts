/** Connections to servers that have proved their name. */
import type { Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";

/** How long a handshake may take, in milliseconds. */
export const HANDSHAKE_MS = 10_000;

interface ProvenOptions {
  name: string;
  /** Connects to the name. */
  reach(signal: AbortSignal): Promise<Socket>;
  /** PEM of authorities that the certificate may be from. Default: those that Node trusts. */
  authorities?: readonly string[] | undefined;
  /** Ends the connection, at whatever point it is. */
  signal: AbortSignal;
}

/** Rejects when the server cannot be reached, or is another one, and with the signal's reason. */
export async function proven({ name, reach, authorities, signal }: ProvenOptions): Promise<TLSSocket> {
  const raw = await reach(signal);
  const end = () => raw.destroy();
  signal.addEventListener("abort", end, { once: true });
  raw.once("close", () => signal.removeEventListener("abort", end));
  if (signal.aborted) end();
  return new Promise((resolve, reject) => {
    const socket = connect({
      ...{ socket: raw, servername: name, ALPNProtocols: ["http/1.1"] },
      ...(authorities !== undefined && { ca: [...authorities] }),
    });
    const late = setTimeout(() => socket.destroy(new Error("its TLS handshake took too long")), HANDSHAKE_MS);
    socket.once("secureConnect", () => {
      clearTimeout(late);
      resolve(socket);
    });
    socket.on("error", (error: Error) => {
      raw.destroy();
      reject(error);
    });
    socket.once("close", () => {
      clearTimeout(late);
      raw.destroy();
      reject(new Error("it ended the connection"));
    });
  });
}
