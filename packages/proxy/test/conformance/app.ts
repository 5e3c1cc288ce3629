/** The app behind all proxies: does what the case says, and writes down what it was asked. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type App as RigApp, until } from "../http/helpers.ts";
import { answer, type Case, OK } from "./case.ts";
import { requestText } from "./texts.ts";
import { type Message, readRequest } from "./wire.ts";

/** Bytes to send, or something less simple. */
export type Act = string | ((talk: Talk) => unknown);

/** What an act may know and do. */
export interface Talk {
  readonly socket: Socket;
  readonly request: Message;
  /** The how manieth request on its connection, from 1. */
  readonly nth: number;
  /** Resolves with the step {@link APP_TOLD}. */
  readonly told: Promise<void>;
  /** Gives back every byte from now on, and ends when the other side does. */
  echo(): void;
}

/** Requests of the suite's own, which no case's app hears of: is the connection usable, and is all well? */
export const PROBE = "/probe";
export const NEXT = "/next";

export type Script = Pick<Case, "atHead" | "atEnd" | "look">;

export class App implements RigApp {
  readonly #server: Server;
  readonly open = new Set<Socket>();
  accepted = 0;
  script: Script = {};
  /** What was asked of the app since it got its script. */
  seen: string[] = [];
  /** Heads that have come since then. */
  asked = 0;
  told = Promise.withResolvers<void>();

  private constructor() {
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      this.accepted += 1;
      this.open.add(socket);
      socket.on("close", () => this.open.delete(socket));
      new Conversation(this, socket);
    });
  }

  static async start(): Promise<App> {
    const app = new App();
    app.#server.listen(0, "127.0.0.1");
    await once(app.#server, "listening");
    return app;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  play(script: Script): void {
    this.script = script;
    this.seen = [];
    this.asked = 0;
    this.told = Promise.withResolvers();
  }

  /** Ends all connections, and waits until the other side has done so too. */
  async endConnections(): Promise<void> {
    for (const socket of this.open) socket.end();
    await until(() => this.open.size === 0, "the proxy to end its connections to the app");
  }

  async dropConnections(): Promise<void> {
    for (const socket of this.open) socket.destroy();
    await until(() => this.open.size === 0, "the app's connections to be gone");
  }

  async stop(): Promise<void> {
    this.#server.close();
    await this.dropConnections();
  }
}

/** One connection to the app. */
class Conversation {
  readonly #app: App;
  readonly #socket: Socket;
  #text = "";
  /** Where the current request begins, and its number. */
  #at = 0;
  #nth = 1;
  #begun = false;
  #echoing = false;

  constructor(app: App, socket: Socket) {
    this.#app = app;
    this.#socket = socket;
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    socket.on("data", (data) => {
      if (this.#echoing) return;
      this.#text += data.toString("latin1");
      while (!this.#echoing && !socket.destroyed && this.#step());
    });
  }

  /** Reads on in the current request. False when more must come. */
  #step(): boolean {
    const request = readRequest(this.#text, this.#at);
    if (request === undefined) return false;
    const { atHead, atEnd } = this.#scriptFor(request);
    if (!this.#begun) {
      this.#begun = true;
      this.#app.asked += 1;
      if (atEnd === undefined) this.#note(request, true);
      this.#act(atHead, request);
    }
    if (request.state === "partial" || this.#echoing) return false;
    this.#begun = false;
    if (atEnd !== undefined) this.#note(request, false);
    this.#act(atEnd, request);
    this.#at = request.end;
    this.#nth += 1;
    return request.state === "whole";
  }

  /** Without `atEnd` the app answers before it has read the request. */
  #scriptFor({ line }: Message): Script {
    const target = line.split(" ")[1];
    if (target === PROBE || target === NEXT) return { atEnd: answer(target) };
    const { atHead, atEnd } = this.#app.script;
    return atHead === undefined && atEnd === undefined ? { atEnd: OK } : this.#app.script;
  }

  #note(request: Message, unread: boolean): void {
    const target = request.line.split(" ")[1];
    if (target !== PROBE && target !== NEXT)
      this.#app.seen.push(requestText(request, this.#app.script.look ?? [], unread));
  }

  #act(act: Act | undefined, request: Message): void {
    if (typeof act === "string") this.#socket.write(act, "latin1");
    else {
      const { promise: told } = this.#app.told;
      act?.({ socket: this.#socket, request, nth: this.#nth, told, echo: () => this.#echo(request) });
    }
  }

  #echo(request: Message): void {
    this.#echoing = true;
    this.#socket.write(this.#text.slice(request.end), "latin1");
    this.#socket.pipe(this.#socket);
  }
}
