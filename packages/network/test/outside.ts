/** A network namespace that plays the internet: it has its own link and servers, and reaches machines only through NAT. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { promisify } from "node:util";
import { RUN_VARIABLE } from "../../../scripts/leftovers.mjs";

const run = promisify(execFile);

/** TEST-NET-2 and the metadata address: no real network uses the first, and tests must not reach the real second. */
export const OUTSIDE = "198.51.100.2";
export const HOST_OUTSIDE = "198.51.100.1";
export const METADATA = "169.254.169.254";
export const PORTS = { echo: 7, hello: 80 };

/** Sends the client its address on one port, echoes on the other, and closes all connections on a line of input. */
const SERVERS = `
const { createServer } = require("net");
const sockets = new Set();
const serve = (port, each) => createServer((socket) => {
  sockets.add(socket.on("error", () => {}));
  each(socket);
}).listen(port, "0.0.0.0");
serve(${PORTS.hello}, (socket) => socket.end("hello " + socket.remoteAddress + "\\r\\n"));
serve(${PORTS.echo}, (socket) => socket.pipe(socket)).on("listening", () => console.log("ready"));
process.stdin.on("data", () => { for (const socket of sockets) socket.resetAndDestroy(); console.log("closed"); });
`;

/** Runs a small program in the namespace, to find out what the outside can reach. */
const TRY = `
const [kind, host, port] = process.argv.slice(1);
const done = (text) => { console.log(text); process.exit(); };
setTimeout(() => done("silence"), 1500);
if (kind === "tcp") require("net").connect(port, host, () => done("open")).on("error", ({ code }) => done(code));
else {
  const resolver = new (require("dns").promises.Resolver)({ timeout: 1000, tries: 1 });
  resolver.setServers([host]);
  resolver.resolve4("shop.internal").then(() => done("answered"), ({ code }) => done(code));
}
`;

export class Outside {
  readonly #id = randomBytes(3).toString("hex");
  /** Names the test run that it belongs to, if there is one. */
  readonly #name = `hib-${process.env[RUN_VARIABLE] ?? "test"}-${this.#id}`;
  readonly cable = `tsthib-${this.#id}`;
  #servers: ChildProcess | undefined;

  static async open(): Promise<Outside> {
    const outside = new Outside();
    try {
      await outside.#open();
      return outside;
    } catch (error) {
      await outside.close();
      throw error;
    }
  }

  async #open(): Promise<void> {
    const name = this.#name;
    await run("ip", ["netns", "add", name]);
    await run("ip", ["link", "add", this.cable, "type", "veth", "peer", "name", "out0", "netns", name]);
    await run("ip", ["link", "set", "dev", this.cable, "alias", tmpdir()]);
    await this.plugIn();
    const inside = [
      "link set dev lo up",
      "link set dev out0 up",
      `address add ${OUTSIDE}/30 dev out0`,
      `address add ${METADATA}/32 dev lo`,
    ];
    for (const line of inside) await run("ip", ["-netns", name, ...line.split(" ")]);
    const args = ["netns", "exec", name, process.execPath, "-e", SERVERS];
    this.#servers = spawn("ip", args, { stdio: ["pipe", "pipe", "inherit"] });
    await this.#says("ready");
  }

  async plugIn(): Promise<void> {
    await run("ip", ["link", "set", "dev", this.cable, "up"]);
    await run("ip", ["address", "replace", `${HOST_OUTSIDE}/30`, "dev", this.cable]);
    await run("ip", ["route", "replace", METADATA, "via", OUTSIDE]);
  }

  /** Makes the kernel forget all translated connections, as it does when an interface goes down. */
  async unplug(): Promise<void> {
    await run("ip", ["link", "set", "dev", this.cable, "down"]);
  }

  /** Makes the servers close every connection, like a server that restarts. */
  async closeConnections(): Promise<void> {
    this.#servers?.stdin?.write("close");
    await this.#says("closed");
  }

  /** Returns the result of a connection, or of a question to a name server, from outside. */
  async reach(kind: "tcp" | "dns", host: string, port: number, by = HOST_OUTSIDE): Promise<string> {
    await run("ip", ["-netns", this.#name, "route", "replace", "default", "via", by]);
    const args = ["netns", "exec", this.#name, process.execPath, "-e", TRY, kind, host, String(port)];
    try {
      return (await run("ip", args)).stdout.trim();
    } finally {
      await run("ip", ["-netns", this.#name, "route", "delete", "default"]);
    }
  }

  /** Removes everything, no matter how much was set up. */
  async close(): Promise<void> {
    const servers = this.#servers;
    if (servers !== undefined && servers.exitCode === null && servers.signalCode === null) {
      const ended = once(servers, "exit");
      servers.kill("SIGKILL");
      await ended;
    }
    await run("ip", ["link", "delete", "dev", this.cable]).catch(() => {});
    await run("ip", ["netns", "delete", this.#name]).catch(() => {});
  }

  async #says(word: string): Promise<void> {
    const signal = AbortSignal.timeout(10_000);
    const [line] = (await once(this.#servers?.stdout as NodeJS.ReadableStream, "data", { signal })) as [Buffer];
    if (String(line).trim() !== word) throw new Error(`the servers say ${String(line)}`);
  }
}
