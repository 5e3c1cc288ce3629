/**
 * The TLS-ALPN-01 challenges of certificate authorities (RFC 8737). Node chooses a certificate before it says what else a
 * client offers, so connections are looked at before TLS begins, and only while a challenge is open.
 */
import { createServer, type Server, type Socket } from "node:net";
import { createSecureContext, TLSSocket } from "node:tls";
import { background } from "@hibernaut/lib/background";
import { ProxyRefusal } from "../contract.ts";
import { type HelloReading, readClientHello } from "../tcp/client-hello.ts";
import { readStart } from "../tcp/read-start.ts";

/** The one protocol that an authority offers to speak. */
const PROTOCOL = "acme-tls/1";

interface TlsChallengeOptions {
  /** The certificates that answer open challenges, with their keys in PEM, by hostname. */
  certificates(): ReadonlyMap<string, string> | undefined;
  /** How long a client may take until its handshake is over, in milliseconds. */
  handshakeMs: number;
}

/** Makes a server that passes its connections on to a TLS server, except for those of authorities. */
export function answerChallenges(inner: Pick<Server, "emit">, options: TlsChallengeOptions): Server {
  return createServer({ noDelay: true, allowHalfOpen: false }, (socket) => {
    if (socket.destroyed) return;
    const open = options.certificates();
    if (open === undefined || open.size === 0) inner.emit("connection", socket);
    else
      background(
        look(socket, open, options).then((pass) => pass && inner.emit("connection", socket)),
        "looking at a TLS handshake",
      );
  });
}

/** Answers a challenge. Resolves with whether the connection is for anyone else, with all of its bytes still in it. */
async function look(
  socket: Socket,
  open: ReadonlyMap<string, string>,
  { handshakeMs }: TlsChallengeOptions,
): Promise<boolean> {
  socket.on("error", () => {}); // what is wrong with it shows in its close
  const late = new AbortController();
  const refusal = new ProxyRefusal(408, "request_timeout", "The handshake did not end in time.");
  const timer = setTimeout(() => {
    late.abort(refusal);
    socket.destroy();
  }, handshakeMs);
  // Of the handshake with an authority as well, which ends with the connection.
  socket.once("close", () => clearTimeout(timer));
  try {
    const hello = await readStart(socket, readClientHello, late.signal);
    const pem = certificateFor(hello, open);
    if (pem === undefined) {
      clearTimeout(timer);
      return true;
    }
    show(socket, pem);
  } catch {
    socket.destroy(); // the client left, or was late
  }
  return false;
}

/** An authority names the hostname, and offers nothing but its protocol. */
function certificateFor(hello: HelloReading, open: ReadonlyMap<string, string>): string | undefined {
  if (hello.kind !== "hello" || hello.serverName === undefined) return undefined;
  const alone = hello.protocols.length === 1 && hello.protocols[0] === PROTOCOL;
  return alone ? open.get(hello.serverName) : undefined;
}

/** The handshake is all that an authority wants to see. */
function show(raw: Socket, pem: string): void {
  const secureContext = createSecureContext({ cert: pem, key: pem });
  const socket = new TLSSocket(raw, { isServer: true, secureContext, ALPNProtocols: [PROTOCOL] });
  socket.on("error", () => raw.destroy());
  socket.once("secure", () => socket.end());
  socket.resume();
}
