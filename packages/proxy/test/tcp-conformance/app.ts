/** An app behind the proxies, which says what it got. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

export class App {
  readonly name: string;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  /** How many bytes it waits for before it answers. */
  expects = 0;
  /** What came on the last connection that brought anything. */
  got = Buffer.alloc(0);

  private constructor(name: string) {
    this.name = name;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket));
  }

  static async start(name: string): Promise<App> {
    const app = new App(name);
    app.#server.listen(0, "127.0.0.1");
    await once(app.#server, "listening");
    return app;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  expect(bytes: number): void {
    this.expects = bytes;
    this.got = Buffer.alloc(0);
  }

  async stop(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  /** Answers with its name once it has got what it waits for, or the client has ended. */
  #serve(socket: Socket): void {
    this.#open.add(socket);
    let got = Buffer.alloc(0);
    socket.on("data", (piece) => {
      got = Buffer.concat([got, piece]);
      this.got = got;
      if (got.length >= this.expects) socket.end(this.name);
    });
    socket.on("end", () => socket.end(this.name));
    socket.on("error", () => {}).on("close", () => this.#open.delete(socket));
  }
}
