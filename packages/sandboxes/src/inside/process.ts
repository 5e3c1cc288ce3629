/** A program in a sandbox: it runs on when its clients go, and others can follow it from then on. */
import type { Readable } from "node:stream";
import type { CommandExit, GuestCommand } from "@hibernaut/guest";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import { Refusal } from "../failure.ts";
import { MOST_FOLLOWERS, MOST_WAITING_BYTES } from "./limits.ts";

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

export type ProcessOutput = { kind: "stdout" | "stderr" | "pty"; bytes: Buffer };
export type ProcessMessage = ProcessOutput | { kind: "end"; exit: CommandExit | { lost: string } };

interface Follower {
  push(message: ProcessMessage): void;
  waiting: number;
}

export class Process {
  readonly pid: number;
  readonly label: ProcessLabel;
  readonly #command: GuestCommand;
  readonly #followers = new Set<Follower>();
  #paused: Readable[] = [];

  constructor(command: GuestCommand, pid: number, label: ProcessLabel, onEnd: () => void) {
    this.#command = command;
    this.pid = pid;
    this.label = label;
    this.#read(command.stdout, label.terminal ? "pty" : "stdout");
    this.#read(command.stderr, "stderr");
    background(this.#ended(onEnd), "the end of a program of a sandbox");
  }

  /** What it prints from now on, and how it ends. A client that does not read makes the program wait. */
  async *follow(signal: AbortSignal): AsyncGenerator<ProcessMessage, void> {
    if (this.#followers.size >= MOST_FOLLOWERS)
      throw new Refusal(429, `${MOST_FOLLOWERS} clients follow process ${this.pid} already. Disconnect one.`);
    const queue: ProcessMessage[] = [];
    let wake: (() => void) | undefined;
    const follower: Follower = {
      waiting: 0,
      push: (message) => {
        queue.push(message);
        wake?.();
      },
    };
    const gone = () => wake?.();
    signal.addEventListener("abort", gone, { once: true });
    this.#followers.add(follower);
    try {
      while (!signal.aborted) {
        const message = queue.shift();
        if (message === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        if (message.kind !== "end") follower.waiting -= message.bytes.length;
        this.#resume();
        yield message;
        if (message.kind === "end") return;
      }
    } finally {
      signal.removeEventListener("abort", gone);
      this.#followers.delete(follower);
      this.#resume();
    }
  }

  /** Resolves when the program has taken so much that more may come. */
  async write(bytes: Uint8Array): Promise<void> {
    if (!this.label.stdin) throw new Refusal(400, `Process ${this.pid} was started without an input.`);
    await new Promise<void>((resolve, reject) => {
      this.#command.stdin.write(bytes, (error) =>
        error === null || error === undefined
          ? resolve()
          : reject(new Refusal(404, `Process ${this.pid} reads no more.`)),
      );
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
    onEnd();
    this.#tell({ kind: "end", exit });
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
    for (const follower of this.#followers) {
      if (message.kind !== "end") follower.waiting += message.bytes.length;
      follower.push(message);
    }
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
