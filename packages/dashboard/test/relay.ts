/** A network between browser and platform that can be cut without a word: nothing arrives, and nothing is closed. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Forwards connections from a port of its own. */
export class Relay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #held = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Opens a relay to a port of loopback. */
  static async open(port: number): Promise<Relay> {
    const server = createServer();
    const relay = new Relay(server);
    server.on("connection", (near) => {
      const far = connect(port, "127.0.0.1");
      relay.#carry(near, far);
      relay.#carry(far, near);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return relay;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts the network: what is sent from now on is lost. */
  hold(): void {
    this.#held = true;
  }

  /** Repairs the network. Connections from before the cut have lost data, so they end. */
  release(): void {
    this.#held = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #carry(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on("data", (chunk) => {
      if (!this.#held) to.write(chunk);
    });
    from.on("error", () => {});
    from.on("close", () => {
      this.#sockets.delete(from);
      if (!this.#held) to.destroy();
    });
  }
}
