/**
 * A client of QEMU's machine protocol (QMP): JSON lines over a Unix socket.
 * https://www.qemu.org/docs/master/interop/qmp-spec.html
 */
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "@hibernaut/lib/text";
import { connectOnce, connectToQemu } from "./connect.ts";
import { type QemuLimits, USUAL_LIMITS } from "./limits.ts";

/** No answer of QEMU is longer than this. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;

/**
 * QEMU answers the first command within milliseconds, even while it starts. After this time, it gets a second connection:
 * two threads of a QEMU that is starting may both begin to accept the first one, and then the one that answers commands
 * waits in accept(2) until there is another (seen in QEMU 7.2, on hosts with few or busy CPUs). Milliseconds.
 */
const SECOND_CONNECTION_MS = 500;
/** What QEMU says on the second connection when it has taken the first command for one of this connection. */
const NEGOTIATED = /negotiation is already complete/;

/** QEMU refused a command, or the connection ended before its answer. */
export class QmpError extends Error {
  override name = "QmpError";
}

/** QEMU did not answer in time, which does not say whether it is alive. */
export class QmpTimeout extends QmpError {
  override name = "QmpTimeout";
}

/** What went wrong with a command: QEMU refused it, or did not answer in time, or the connection ended before the answer. */
export const QMP_FAULTS = ["refused", "timeout", "closed"] as const;
export type QmpFault = (typeof QMP_FAULTS)[number];

interface QmpOptions extends Pick<QemuLimits, "commandMs"> {
  /** Counts what goes wrong. By default, nobody does. */
  onFault?(fault: QmpFault): void;
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
  /** Nothing is counted before the connection is used, or once it is closed: how QEMU starts is another matter. */
  #inUse = false;
  readonly #onFault: (fault: QmpFault) => void;
  readonly #pending = new Map<number, Pending>();
  #line = "";
  #nextId = 1;
  #greeted = Promise.withResolvers<void>();

  private constructor(socket: Socket, { commandMs, onFault = () => {} }: QmpOptions) {
    this.#socket = socket;
    this.#commandMs = commandMs;
    this.#onFault = (fault) => {
      if (this.#inUse) onFault(fault);
    };
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
  static async connect(path: string, signal: AbortSignal, options: QmpOptions = USUAL_LIMITS): Promise<Qmp> {
    const first = new Qmp(await connectToQemu(path, signal), options);
    const late = new AbortController();
    const second = delay(SECOND_CONNECTION_MS, undefined, { signal: late.signal }).then(() => connectOnce(path));
    let other: Qmp | undefined;
    const answers = [
      first.#negotiate(signal),
      second.then(async (socket) => {
        if (socket === undefined) throw new QmpError("QEMU takes no second connection");
        other = new Qmp(socket, options);
        if (late.signal.aborted) other.close();
        await other.#negotiate(signal);
        return other;
      }),
    ];
    // A first one that ends before there is a second is the end of QEMU.
    answers[0]?.catch(() => late.abort());
    const winner = await Promise.any(answers).catch(({ errors }: AggregateError) => Promise.reject(errors[0] as Error));
    late.abort();
    for (const qmp of [first, other]) if (qmp !== winner) qmp?.close();
    winner.#inUse = true;
    return winner;
  }

  /** Waits for the greeting, and leaves the negotiation mode. Ends the connection if that fails. */
  async #negotiate(signal: AbortSignal): Promise<this> {
    const abort = () => this.close();
    signal.addEventListener("abort", abort, { once: true });
    try {
      await this.#greeted.promise;
      await this.execute("qmp_capabilities").catch((error: unknown) => {
        if (!NEGOTIATED.test(messageOf(error))) throw error;
      });
      return this;
    } catch (error) {
      this.close();
      throw error;
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
    let timedOut = false;
    const timer = setTimeout(() => {
      this.#onFault("timeout");
      timedOut = true;
      this.#settle(id, undefined, "no answer in time");
    }, this.#commandMs);
    this.#socket.write(`${JSON.stringify({ execute: command, arguments: args, id })}\n`);
    try {
      return (await answer.promise) as T;
    } catch (error) {
      const what = `QEMU refused ${command}: ${messageOf(error)}`;
      throw timedOut ? new QmpTimeout(what) : new QmpError(what);
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
    this.#inUse = false;
    this.#socket.destroy();
  }

  /** A QEMU that a guest has taken over may send anything: that ends the connection, and nothing else. */
  #receive(chunk: string): void {
    try {
      this.#line += chunk;
      if (this.#line.length > MAX_LINE_BYTES) throw new Error("an answer of QEMU is too long");
      const lines = this.#line.split("\n");
      this.#line = lines.pop() ?? "";
      for (const line of lines) if (line.trim() !== "") this.#message(JSON.parse(line) as Record<string, unknown>);
    } catch (error) {
      this.#socket.destroy(error as Error);
    }
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
      const why = error && (error.desc ?? "no reason given");
      if (why !== undefined) this.#onFault("refused");
      this.#settle(message.id as number, message.return, why);
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
    for (const id of [...this.#pending.keys()]) {
      this.#onFault("closed");
      this.#settle(id, undefined, why);
    }
  }
}

function versionOf({ version: { qemu, package: build } }: Greeting): string {
  const number = `${qemu.major}.${qemu.minor}.${qemu.micro}`;
  return build === "" ? number : `${number} (${build.trim()})`;
}
