/** A command that runs in the guest: its three streams, its end, and the means to influence it. */
import { Readable, Writable } from "node:stream";
import { CreditedSender, CreditGiver, STREAM_WINDOW, TOO_MUCH } from "./credit.ts";
import { GuestError } from "./error.ts";
import { type Frame, FrameType } from "./frame.ts";
import type { CommandExit, StreamEnd, StreamLink } from "./protocol.ts";

const TIMED_OUT = 1;
const NOT_STARTED = 2;

export class GuestCommand implements StreamEnd {
  /** Goes nowhere unless the command was started with input. Both outputs have to be read: they share their credit. */
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Empty for a command with a terminal, which has one output. */
  readonly stderr: Readable;
  /** Settles after all output came; rejects when the guest is gone before. */
  readonly exit: Promise<CommandExit>;
  readonly #exit = Promise.withResolvers<CommandExit>();
  readonly #link: StreamLink;
  readonly #sender: CreditedSender;
  readonly #givers: Record<"out" | "err", CreditGiver>;

  constructor(link: StreamLink) {
    this.#link = link;
    this.#sender = new CreditedSender(link);
    this.#givers = { out: new CreditGiver(link), err: new CreditGiver(link) };
    this.exit = this.#exit.promise;
    this.exit.catch(() => {}); // whoever only reads the output need not know
    const output = (giver: CreditGiver) =>
      new Readable({ highWaterMark: STREAM_WINDOW / 2, read: () => giver.passedOn() });
    this.stdout = output(this.#givers.out);
    this.stderr = output(this.#givers.err);
    this.stdin = new Writable({
      highWaterMark: STREAM_WINDOW,
      write: (chunk: Buffer, _encoding, done) => this.#sender.send(chunk, done),
      final: (done) => {
        this.#link.send(FrameType.end);
        done();
      },
    });
    this.stdin.on("error", () => {}); // a command need not read its input
  }

  receive({ type, payload }: Frame): void {
    if (type === FrameType.data) this.#output(this.#givers.out, this.stdout, payload);
    if (type === FrameType.dataErr) this.#output(this.#givers.err, this.stderr, payload);
    if (type === FrameType.credit && payload.length === 4) this.#sender.grant(payload.readUInt32LE());
    if (type === FrameType.reset) this.fail(new GuestError(payload.toString("utf8")));
    if (type === FrameType.execExit && payload.length >= 9) this.#ended(payload);
  }

  fail(error: Error): void {
    this.#link.forget();
    this.#exit.reject(error);
    this.stdin.destroy();
    // An aborted output ends: the error is told once, by `exit`.
    this.stdout.push(null);
    this.stderr.push(null);
  }

  /** The size of its terminal, in characters. */
  resize(rows: number, columns: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt16LE(rows, 0);
    payload.writeUInt16LE(columns, 2);
    this.#link.send(FrameType.resize, payload);
  }

  /** Sends a signal, by number, to its process group. */
  signal(number: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32LE(number);
    this.#link.send(FrameType.signal, payload);
  }

  /** Kills it with its process group and forgets it. */
  kill(why = "the caller is gone"): void {
    this.#link.send(FrameType.reset, Buffer.from(why));
    this.fail(new GuestError(why));
  }

  #output(giver: CreditGiver, output: Readable, bytes: Buffer): void {
    if (giver.received(bytes.length)) output.push(bytes);
    else this.kill(TOO_MUCH);
  }

  #ended(payload: Buffer): void {
    const how = payload[8];
    this.#link.forget();
    this.stdin.destroy();
    this.stdout.push(null);
    this.stderr.push(null);
    this.#exit.resolve({
      code: payload.readUInt32LE(0),
      signal: payload.readUInt32LE(4),
      timedOut: how === TIMED_OUT,
      failure: how === NOT_STARTED ? payload.toString("utf8", 9) : undefined,
    });
  }
}
