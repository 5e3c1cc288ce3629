/** Connections to other hosts, which are kept for a while. */
import { Agent } from "node:http";
import type { Socket } from "node:net";
import { connect } from "node:tls";
import type { Peers } from "./cluster.ts";

/** A host of the same region answers within milliseconds; one that does not for this long will not. */
const CONNECT_TIMEOUT_MS = 3000;
/** A connection without requests is closed after this time, long before the other side closes its end, after 72 s. */
const IDLE_MS = 30_000;
/** Packets that say that the connection is alive, after this time of silence. */
const KEEPALIVE_MS = 10_000;

export function connectTo({ host, port, tls }: ReturnType<Peers["target"]>): Socket {
  const socket = connect({ ...tls, host, port });
  const timer = setTimeout(
    () => socket.destroy(new Error(`no connection to ${host}:${port} within ${CONNECT_TIMEOUT_MS} ms`)),
    CONNECT_TIMEOUT_MS,
  );
  const over = () => clearTimeout(timer);
  socket.once("secureConnect", over).once("close", over);
  socket.setKeepAlive(true, KEEPALIVE_MS);
  return socket;
}

/** Keeps connections to one host. */
export class PeerAgent extends Agent {
  readonly #connect: () => Socket;

  /** @param open opens a connection; throws `host_unreachable` when the host is away */
  constructor(open: () => Socket) {
    super({ keepAlive: true, timeout: IDLE_MS });
    this.#connect = open;
  }

  override createConnection(): Socket {
    return this.#connect().setNoDelay(true);
  }
}
