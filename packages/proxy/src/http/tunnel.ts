/** Connects a client and an app after an upgrade, until both sides have ended (RFC 9110 7.8). */
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ENDINGS } from "./refusals.ts";
import { lookAtTunnel } from "./tunnel-looks.ts";

/** What went through a tunnel. */
export interface Tunnelled {
  bytesIn: number;
  bytesOut: number;
  error: string | undefined;
}

/** When one side has ended well, the other may take this long to take what is left. */
const DRAIN_MS = 60_000;

export interface TunnelWatch {
  /** The client sent something. */
  onClientData(): void;
  /** Something passed, including what was read together with the heads. */
  onMoved(bytesIn: number, bytesOut: number): void;
  /** Nothing has passed for a while, or something passes again. */
  onQuiet?(quiet: boolean): void;
  onClose(moved: Tunnelled): void;
}

/** Moves all bytes in both directions, says how many, and passes the ends on. */
export type Move = (
  client: Duplex,
  upstream: Socket,
  on: { fromClient(bytes: number): void; fromUpstream(bytes: number): void },
) => void;

interface TunnelOptions extends TunnelWatch {
  /** A socket, or the stream of a WebSocket over HTTP/2. */
  client: Socket | ServerHttp2Stream;
  upstream: Socket;
  /** Bytes that were read together with the heads. */
  fromClient: Buffer;
  fromUpstream: Buffer;
  /** How long both sides may be silent before the tunnel ends, in milliseconds. 0: without limit. */
  idleMs: number;
  /** How long a side may leave bytes waiting without taking one before the tunnel ends, in milliseconds. 0: without limit. */
  stallMs: number;
  /** Reset the other side when one breaks off, so that what is cut short does not look whole. Not over TLS. Default: false. */
  reset?: boolean;
  /** Cuts the client off in place of closing its socket. */
  cutClient?(): void;
  move: Move;
}

/** Connects the two sides. Either may end its direction and still read. A side that breaks off also ends the other. */
export function openTunnel(options: TunnelOptions): void {
  const { client, upstream, fromClient, fromUpstream, idleMs, stallMs, move } = options;
  const { onClientData, onMoved, onQuiet, onClose, reset } = options;
  const moved: Tunnelled = { bytesIn: fromClient.length, bytesOut: fromUpstream.length, error: undefined };
  const noticed = lookAtTunnel({
    client: { given: () => moved.bytesOut, waiting: () => client.writableLength },
    upstream: { given: () => moved.bytesIn, waiting: () => upstream.writableLength },
    ...{ stallMs, onQuiet },
    onStall(side) {
      moved.error ??= side === "client" ? ENDINGS.clientStalled : ENDINGS.upstreamStalled;
      cutClient();
      cut(upstream);
    },
  });
  onMoved(fromClient.length, fromUpstream.length);
  if (fromClient.length > 0) upstream.write(fromClient);
  if (fromUpstream.length > 0) client.write(fromUpstream);
  move(client, upstream, {
    fromClient(bytes) {
      moved.bytesIn += bytes;
      noticed.moved();
      onMoved(bytes, 0);
      onClientData();
    },
    fromUpstream(bytes) {
      moved.bytesOut += bytes;
      noticed.moved();
      onMoved(0, bytes);
    },
  });
  // Everything passes this socket in one direction or the other.
  client.setTimeout(idleMs, () => client.destroy());
  const cut = (socket: Socket) => void (reset === true ? socket.resetAndDestroy() : socket.destroy());
  const cutClient = options.cutClient ?? (() => cut(client as Socket));
  const over = () => {
    noticed.end();
    onClose(moved);
  };
  const whole = () => client.readableEnded && upstream.readableEnded;
  client.once("close", () => {
    if (!whole()) {
      moved.error ??= ENDINGS.clientGone;
      cut(upstream);
    }
    upstream.setTimeout(DRAIN_MS, () => cut(upstream));
    if (upstream.closed) over();
  });
  upstream.once("close", () => {
    if (!whole()) {
      moved.error ??= ENDINGS.upstreamBroke;
      cutClient();
    }
    client.setTimeout(DRAIN_MS, cutClient);
    if (client.closed) over();
  });
}
