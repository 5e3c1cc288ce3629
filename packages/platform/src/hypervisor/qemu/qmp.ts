/**
 * A client of QEMU's machine protocol (QMP): JSON lines over a Unix socket.
 * https://www.qemu.org/docs/master/interop/qmp-spec.html
 */
import type { Socket } from "node:net";
import { messageOf } from "../../lib/text.ts";
import { connectToQemu } from "./connect.ts";
import { USUAL_LIMITS } from "./limits.ts";

/** No answer of QEMU is longer than this. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;

/** QEMU refused a command, or the connection ended before its answer. */
export class QmpError extends Error {
  override name = "QmpError";
}

interface Greeting {
  version: { qemu: { major: number; minor: number; micro: number }; package: string };
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** An event from QEMU, such as `STOP` or `MIGRATION`. */
interface QmpEvent {
  event: string;
  data: Record<string, unknown>;
}

/** A connection to one QEMU. */
export class Qmp {
  /** QEMU's exact version, as `qemu --version` prints it. */
  version = "";
  readonly #listeners = new Set<(event: QmpEvent) => void>();
  readonly #socket: Socket;
  readonly #commandMs: number;
  readonly #pending = new Map<number, Pending>();
  #line = "";
  #nextId = 1;
  #greeted = Promise.withResolvers<void>();

  private constructor(socket: Socket, commandMs: number) {
    this.#socket = socket;
    this.#commandMs = commandMs;
    this.#greeted.promise.catch(() => {});
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => this.#receive(chunk));
    socket.on("error", (error) => this.#end(error.message));
    socket.on("close", () => this.#end("the connection to QEMU ended"));
  }

  /**
   * Connects as soon as QEMU listens, and leaves the negotiation mode. Rejects with the signal's reason when it is
   * aborted first. A command that has no answer after `commandMs` (milliseconds) is taken as refused.
   */
  static async connect(path: string, signal: AbortSignal, { commandMs } = USUAL_LIMITS): Promise<Qmp> {
    const socket = await connectToQemu(path, signal);
    const qmp = new Qmp(socket, commandMs);
    const abort = () => socket.destroy();
    signal.addEventListener("abort", abort, { once: true });
    try {
      await qmp.#greeted.promise;
      await qmp.execute("qmp_capabilities");
      return qmp;
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Runs a command and returns its answer; rejects with a {@link QmpError} that names the command. */
  async execute<T = unknown>(command: string, args: Record<string, unknown> = {}): Promise<T> {
    if (this.#socket.destroyed) throw new QmpError(`QEMU did not receive ${command}: the connection to it has ended`);
    const id = this.#nextId++;
    const answer = Promise.withResolvers<unknown>();
    this.#pending.set(id, answer);
    const timer = setTimeout(() => this.#settle(id, undefined, "no answer in time"), this.#commandMs);
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    try {
      return (await answer.promise) as T;
    } catch (error) {
      throw new QmpError(`QEMU refused ${command}: ${messageOf(error)}`);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Calls `listener` with each event. Returns a function that stops this. */
  subscribe(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Ends the connection. QEMU keeps running. */
  close(): void {
    this.#socket.destroy();
  }

  #receive(chunk: string): void {
    this.#line += chunk;
    if (this.#line.length > MAX_LINE_BYTES) this.#socket.destroy(new Error("an answer of QEMU is too long"));
    const lines = this.#line.split("\n");
    this.#line = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") this.#message(JSON.parse(line) as Record<string, unknown>);
  }

  #message(message: Record<string, unknown>): void {
    if (typeof message.event === "string") {
      const event = { event: message.event, data: (message.data ?? {}) as Record<string, unknown> };
      for (const listener of [...this.#listeners]) listener(event);
    } else if ("QMP" in message) {
      this.version = versionOf(message.QMP as Greeting);
      this.#greeted.resolve();
    } else {
      const error = message.error as { desc?: string } | undefined;
      this.#settle(message.id as number, message.return, error && (error.desc ?? "no reason given"));
    }
  }

  #settle(id: number, value: unknown, error: string | undefined): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(value);
    else pending?.reject(new Error(error));
  }

  #end(why: string): void {
    this.#greeted.reject(new QmpError(why));
    for (const id of [...this.#pending.keys()]) this.#settle(id, undefined, why);
  }
}

function versionOf({ version: { qemu, package: build } }: Greeting): string {
  const number = `${qemu.major}.${qemu.minor}.${qemu.micro}`;
  return build === "" ? number : `${number} (${build.trim()})`;
}
