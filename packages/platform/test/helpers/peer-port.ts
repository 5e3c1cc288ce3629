/** A host's peer port without a cluster: TLS, and whatever answers behind it. */
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import type { Peers } from "../../../cluster/src/cluster.ts";
import { selfSigned } from "./self-signed.ts";
import { tempFolder } from "./temp.ts";

export interface PeerPort {
  /** Leads to this port, whatever host is asked for. */
  peers: Peers;
  /** The connections that it has accepted. */
  sockets: Set<TLSSocket>;
  close(): void;
}

/** Listens on a free loopback port. */
export async function startPeerPort(accept: (socket: TLSSocket) => void): Promise<PeerPort> {
  const { cert, keyFile } = selfSigned(await tempFolder("peer-port"), "peer", ["peer"]);
  const sockets = new Set<TLSSocket>();
  const server = createServer({ cert, key: readFileSync(keyFile, "utf8"), ALPNProtocols: ["hib-api"] }, (socket) => {
    // A client may end a connection at any time: anyone who reads from it hears of that.
    socket.on("error", () => {});
    sockets.add(socket);
    accept(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    peers: {
      target: () => ({ host: "127.0.0.1", port, tls: { ca: cert, servername: "peer", ALPNProtocols: ["hib-api"] } }),
    },
    sockets,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
