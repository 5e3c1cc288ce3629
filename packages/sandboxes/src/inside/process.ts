/** A program in a sandbox: it runs on when its clients go, and others can follow it from then on. */
import type { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type { CommandExit, GuestCommand } from "@hibernaut/guest";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { Refusal } from "../failure.ts";
import { MOST_FOLLOWERS, MOST_INPUT_BYTES, MOST_WAITING_BYTES } from "./limits.ts";

/** What a client chose for the program. It is kept in the machine, so that another platform knows it, too. */
export interface ProcessLabel {
  cmd: string;
  args: string[];
  envs: Record<string, string>;
  cwd?: string;
  tag?: string;
  terminal: boolean;
  stdin: boolean;
}

type ProcessOutput = { kind: "stdout" | "stderr" | "pty"; bytes: Buffer };
export type ProcessMessage = ProcessOutput | { kind: "end"; exit: CommandExit | { lost: string } };

/** A client that reads at its own pace. */
class Follower {
  /** How much it has not taken yet, in bytes. */
  waiting = 0;
  readonly #queue: ProcessMessage[] = [];
  #stopped = false;
  #wake: (() => void) | undefined;

  push(message: ProcessMessage): void {
    if (message.kind !== "end") this.waiting += message.bytes.length;
    this.#queue.push(message);
    this.#wake?.();
  }

  stop(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  /** Undefined once it has stopped. */
  async next(): Promise<ProcessMessage | undefined> {
    while (!this.#stopped && this.#queue.length === 0)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    const message = this.#stopped ? undefined : this.#queue.shift();
    if (message !== undefined && message.kind !== "end") this.waiting -= message.bytes.length;
    return message;
  }
}

export class Process {
  readonly pid: number;
  readonly label: ProcessLabel;
  readonly #command: GuestCommand;
  readonly #followers = new Set<Follower>();
  #paused: Readable[] = [];
  #end: ProcessMessage | undefined;
  /** Those who wait until their input is taken. */
  readonly #writers = new Set<() => void>();

  constructor(command: GuestCommand, pid: number, label: ProcessLabel, onEnd: () => void) {
    this.#command = command;
    this.pid = pid;
    this.label = label;
    this.#read(command.stdout, label.terminal ? "pty" : "stdout");
    this.#read(command.stderr, "stderr");
    background(this.#ended(onEnd), "the end of a program of a sandbox");
  }

  /** What it prints from now on, and how it ends. A client that does not read makes the program wait. */
  follow(signal: AbortSignal): AsyncGenerator<ProcessMessage, void> {
    if (this.#followers.size >= MOST_FOLLOWERS)
      throw new Refusal(429, `${MOST_FOLLOWERS} clients follow process ${this.pid} already. Disconnect one.`);
    const follower = new Follower();
    this.#followers.add(follower);
    if (this.#end !== undefined) follower.push(this.#end);
    const gone = () => {
      // The client may be gone while its connection has not taken the last message: the program need not wait for that.
      this.#followers.delete(follower);
      follower.stop();
      this.#resume();
    };
    signal.addEventListener("abort", gone, { once: true });
    if (signal.aborted) gone();
    return this.#messages(follower, () => {
      signal.removeEventListener("abort", gone);
      gone();
    });
  }

  async *#messages(follower: Follower, over: () => void): AsyncGenerator<ProcessMessage, void> {
    try {
      for (let message = await follower.next(); message !== undefined; message = await follower.next()) {
        this.#resume();
        yield message;
        if (message.kind === "end") return;
      }
    } finally {
      over();
    }
  }

  /** Resolves when the program has taken so much that more may come. */
  async write(bytes: Uint8Array): Promise<void> {
    if (!this.label.stdin) throw new Refusal(400, `Process ${this.pid} was started without an input.`);
    const { stdin } = this.#command;
    if (stdin.writableLength > MOST_INPUT_BYTES)
      throw new Refusal(429, `Process ${this.pid} does not read its input. Wait until it does.`);
    await new Promise<void>((resolve, reject) => {
      // The stream says nothing of what was not written when its program ends.
      const over = () => reject(new Refusal(404, `Process ${this.pid} reads no more.`));
      if (this.#end !== undefined) return over();
      this.#writers.add(over);
      stdin.write(bytes, (error) => {
        this.#writers.delete(over);
        if (error === null || error === undefined) resolve();
        else over();
      });
    });
  }

  closeInput(): void {
    if (this.label.terminal) throw new Refusal(400, "A terminal's input has no end. Send it a byte 4 (Ctrl-D).");
    this.#command.stdin.end();
  }

  resize(rows: number, columns: number): void {
    this.#command.resize(rows, columns);
  }

  signal(number: number): void {
    this.#command.signal(number);
  }

  async #ended(onEnd: () => void): Promise<void> {
    const exit = await this.#command.exit.catch((error: unknown) => ({ lost: messageOf(error) }));
    // What it printed comes first, also to a client that is slow.
    if (!("lost" in exit))
      await Promise.all([this.#command.stdout, this.#command.stderr].map((output) => finished(output).catch(() => {})));
    onEnd();
    this.#end = { kind: "end", exit };
    this.#tell(this.#end);
    for (const over of this.#writers) over();
    this.#writers.clear();
  }

  #read(output: Readable, kind: ProcessOutput["kind"]): void {
    output.on("data", (bytes: Buffer) => {
      this.#tell({ kind, bytes });
      if (!this.#full()) return;
      output.pause();
      this.#paused.push(output);
    });
  }

  #tell(message: ProcessMessage): void {
    for (const follower of this.#followers) follower.push(message);
  }

  #full(): boolean {
    return [...this.#followers].some(({ waiting }) => waiting > MOST_WAITING_BYTES);
  }

  #resume(): void {
    if (this.#paused.length === 0 || this.#full()) return;
    const paused = this.#paused;
    this.#paused = [];
    for (const output of paused) output.resume();
  }
}
