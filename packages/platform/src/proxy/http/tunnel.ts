/** Connects two sockets after an upgrade, until both sides have ended (RFC 9110 7.8). */
import type { Socket } from "node:net";
import { ENDINGS } from "./refusals.ts";

/** What went through a tunnel. */
interface Tunnelled {
  bytesIn: number;
  bytesOut: number;
  error: string | undefined;
}

export interface TunnelWatch {
  /** The client sent something. */
  onClientData(): void;
  /** Something passed, including what was read together with the heads. */
  onMoved(bytesIn: number, bytesOut: number): void;
  onClose(moved: Tunnelled): void;
}

interface TunnelOptions extends TunnelWatch {
  client: Socket;
  upstream: Socket;
  /** Bytes that were read together with the heads. */
  fromClient: Buffer;
  fromUpstream: Buffer;
  /** How long both sides may be silent before the tunnel ends, in milliseconds. */
  idleMs: number;
}

/** Connects the two sides. Either may end its direction and still read. A side that breaks off also ends the other. */
export function openTunnel(options: TunnelOptions): void {
  const { client, upstream, fromClient, fromUpstream, idleMs, onClientData, onMoved, onClose } = options;
  const moved: Tunnelled = { bytesIn: fromClient.length, bytesOut: fromUpstream.length, error: undefined };
  onMoved(fromClient.length, fromUpstream.length);
  if (fromClient.length > 0) upstream.write(fromClient);
  if (fromUpstream.length > 0) client.write(fromUpstream);
  client.on("data", (chunk) => {
    moved.bytesIn += chunk.length;
    onMoved(chunk.length, 0);
    onClientData();
  });
  upstream.on("data", (chunk) => {
    moved.bytesOut += chunk.length;
    onMoved(0, chunk.length);
  });
  client.pipe(upstream);
  upstream.pipe(client);
  // Everything passes this socket in one direction or the other.
  client.setTimeout(idleMs, () => client.destroy());
  const whole = () => client.readableEnded && upstream.readableEnded;
  client.once("close", () => {
    if (!whole()) {
      moved.error ??= ENDINGS.clientGone;
      upstream.destroy();
    }
    if (upstream.closed) onClose(moved);
  });
  upstream.once("close", () => {
    if (!whole()) {
      moved.error ??= ENDINGS.upstreamBroke;
      client.destroy();
    }
    if (client.closed) onClose(moved);
  });
}
