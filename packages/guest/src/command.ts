/** A command in a guest: its three streams, how it ends, and ways to control it. */
import { Readable, Writable } from "node:stream";
import { CreditedSender, CreditGiver, STREAM_WINDOW, TOO_MUCH } from "./credit.ts";
import { GuestError } from "./error.ts";
import { type Frame, FrameType } from "./frame.ts";
import type { CommandExit, StreamEnd, StreamLink } from "./protocol.ts";

/** How a command ended, as F_EXEC_EXIT says it: `enum command_end` in the agent's flow.h. */
export const CommandEnd = { ended: 0, timedOut: 1, notStarted: 2 } as const;

/**
 * After how many milliseconds without a byte a forwarded connection no longer keeps its machine awake. It stays open while
 * the machine sleeps. Programs that poll through it do so more often than this.
 */
const QUIET_AFTER_MS = 60_000;

/** What a guest is told that sends output after its end. */
const AFTER_END = "more was sent after the end";

/** A command that is running in a guest. */
export class GuestCommand implements StreamEnd {
  /** Leads nowhere unless the command was started with an input. */
  readonly stdin: Writable;
  /** Read both outputs, or the command comes to a halt. */
  readonly stdout: Readable;
  /** Empty for a command with a terminal, which has one output. */
  readonly stderr: Readable;
  /** Resolves after all output has arrived. Rejects with a {@link GuestError} when the guest is gone before that. */
  readonly exit: Promise<CommandExit>;
  /**
   * Resolves with the process id, as soon as the program runs. Rejects with a {@link GuestError} when it cannot be run, or
   * the guest is gone, or its agent is one that does not say it.
   */
  readonly started: Promise<number>;
  /** Whether it was started by an earlier platform. */
  readonly kept: boolean;
  readonly #started = Promise.withResolvers<number>();
  readonly #exit = Promise.withResolvers<CommandExit>();
  /** A connection keeps its machine awake only while bytes flow. Anything else does until it ends. */
  readonly #connection: boolean;
  #flowedAt = performance.now();
  /** The output has ended, although the command has not. */
  #outputEnded = false;
  readonly #link: StreamLink;
  readonly #sender: CreditedSender;
  readonly #givers: Record<"out" | "err", CreditGiver>;

  /**
   * `kept`: the command was started by an earlier platform, as this process. This many bytes of its input, which that platform
   * sent, still wait for it.
   */
  constructor(
    link: StreamLink,
    { connection = false, kept }: { connection?: boolean; kept?: { pid: number; waiting: number } } = {},
  ) {
    this.kept = kept !== undefined;
    this.#connection = connection;
    this.#link = link;
    this.#sender = new CreditedSender(link, Math.max(0, STREAM_WINDOW - (kept?.waiting ?? 0)));
    this.#givers = { out: new CreditGiver(link), err: new CreditGiver(link) };
    this.exit = this.#exit.promise;
    this.exit.catch(() => {}); // A caller that only reads the output need not handle it.
    this.started = this.#started.promise;
    this.started.catch(() => {});
    if (kept !== undefined) this.#started.resolve(kept.pid);
    const output = (giver: CreditGiver) =>
      new Readable({ highWaterMark: STREAM_WINDOW / 2, read: () => giver.passedOn() });
    this.stdout = output(this.#givers.out);
    this.stderr = output(this.#givers.err);
    this.stdin = new Writable({
      highWaterMark: STREAM_WINDOW,
      write: (chunk: Buffer, _encoding, done) => {
        this.#flowedAt = performance.now();
        this.#sender.send(chunk, done);
      },
      final: (done) => {
        this.#link.send(FrameType.end);
        done();
      },
    });
    this.stdin.on("error", () => {}); // A command need not read its input.
  }

  /** Whether the machine must stay awake for it. */
  get active(): boolean {
    return !this.#connection || performance.now() - this.#flowedAt < QUIET_AFTER_MS;
  }

  receive({ type, payload }: Frame): void {
    if (type === FrameType.data) this.#output(this.#givers.out, this.stdout, payload);
    if (type === FrameType.dataErr) this.#output(this.#givers.err, this.stderr, payload);
    if (type === FrameType.end) this.#endOutput(); // only tasks say so; the output of a command ends with it
    if (type === FrameType.credit && payload.length === 4) this.#sender.grant(payload.readUInt32LE());
    if (type === FrameType.reset) this.fail(new GuestError(payload.toString("utf8")));
    if (type === FrameType.execStarted && payload.length === 4) this.#started.resolve(payload.readUInt32LE());
    if (type === FrameType.execExit && payload.length >= 9) this.#ended(payload);
  }

  fail(error: Error): void {
    this.#link.forget();
    this.#started.reject(error);
    this.#exit.reject(error);
    this.stdin.destroy();
    // The outputs just end: `exit` alone reports the error.
    this.stdout.push(null);
    this.stderr.push(null);
  }

  /** Sets the size of the command's terminal, in characters. */
  resize(rows: number, columns: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt16LE(rows, 0);
    payload.writeUInt16LE(columns, 2);
    this.#link.send(FrameType.resize, payload);
  }

  /** Sends a signal, by number, to the command's process group. */
  signal(number: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32LE(number);
    this.#link.send(FrameType.signal, payload);
  }

  /** Kills the command and its process group. `exit` rejects with `why`. */
  kill(why = "the caller is gone"): void {
    this.#link.send(FrameType.reset, Buffer.from(why));
    this.fail(new GuestError(why));
  }

  #output(giver: CreditGiver, output: Readable, bytes: Buffer): void {
    this.#flowedAt = performance.now();
    if (!giver.received(bytes.length)) this.kill(TOO_MUCH);
    // A stream throws at a push after its end, and no guest may make it.
    else if (this.#outputEnded && output === this.stdout) this.kill(AFTER_END);
    else output.push(bytes);
  }

  #endOutput(): void {
    this.#outputEnded = true;
    this.stdout.push(null);
  }

  #ended(payload: Buffer): void {
    const how = payload[8];
    const failure = how === CommandEnd.notStarted ? payload.toString("utf8", 9) : undefined;
    this.#link.forget();
    this.stdin.destroy();
    this.stdout.push(null);
    this.stderr.push(null);
    this.#started.reject(new GuestError(failure ?? "the guest did not say which process it was"));
    this.#exit.resolve({
      code: payload.readUInt32LE(0),
      signal: payload.readUInt32LE(4),
      timedOut: how === CommandEnd.timedOut,
      failure,
    });
  }
}
