/** Where other hosts connect TCP clients with this host's machines. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Shares } from "@hibernaut/connections";
import type { LeaseProvider } from "../contract.ts";
import type { Limits } from "../http/limits.ts";
import { toProxyRefusal } from "../http/refusals.ts";
import { carry } from "../tcp/carry.ts";
import { LinkStream } from "./link-stream.ts";
import { acceptLink, readLink, refuseLink } from "./tcp-link.ts";

interface TcpFrontOptions {
  leases: LeaseProvider & { wake(machineId: string): void };
  limits: Limits;
  /** How many connections to machines there may be, by app. */
  machines: Shares;
}

interface Link {
  socket: TLSSocket;
  machineId: string;
}

export class TcpFront {
  readonly #options: TcpFrontOptions;
  readonly #links = new Set<Link>();

  constructor(options: TcpFrontOptions) {
    this.#options = options;
  }

  /** Serves a connection whose other end has shown the certificate of a host. */
  accept(socket: TLSSocket): void {
    socket.on("error", () => {}); // what is wrong with it shows in its close
    const link: Link = { socket, machineId: "" };
    this.#links.add(link);
    void this.#serve(link)
      .catch(() => void socket.destroy()) // the other host says so to its client
      .finally(() => this.#links.delete(link));
  }

  /** Breaks the connections to a machine whose guest has ended: nobody is left who would close them. */
  forget(machineId: string, ended: boolean): void {
    if (ended) for (const link of this.#links) if (link.machineId === machineId) link.socket.destroy();
  }

  /** Cuts all connections off: the first host tells its clients. */
  close(): void {
    for (const { socket } of this.#links) socket.destroy();
  }

  async #serve(link: Link): Promise<void> {
    const { socket } = link;
    const { leases, limits, machines } = this.#options;
    const { app, machine, port, serverName, origin, wakeOnly } = await readLink(socket, limits.headMs);
    if (wakeOnly === true) {
      leases.wake(machine);
      socket.end();
      return;
    }
    link.machineId = machine;
    const client = new LinkStream(socket);
    let open = false;
    await carry({
      maySleep: false,
      client: client as unknown as Socket,
      ...{ app, port, serverName, origin, leases, limits, machines },
      to: { from: app, app, machineId: machine },
      onMachine: () => () => {},
      onConnected: (wake) => {
        open = true;
        acceptLink(socket, wake);
      },
      cut: (error) => {
        if (open) client.destroy();
        else refuseLink(socket, toProxyRefusal(error));
      },
      onAccess: () => {}, // the first host logs the connection
    });
  }
}
