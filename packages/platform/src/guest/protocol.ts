/**
 * What both halves of the host side of the agent channel talk about: the app to run, how it ended, commands, and the
 * ends of a stream. `packages/guest/agent/` is the other side.
 */
import type { GuestNetwork } from "../network/contract.ts";
import type { Frame } from "./frame.ts";

/** How the app ended. `signal` is 0 when it exited by itself. */
export interface GuestExit {
  code: number;
  signal: number;
  /** The kernel killed it for lack of memory. */
  oom: boolean;
}

/** The agent's account of itself. */
export interface Hello {
  phase: "waiting" | "running" | "ended";
  /** Every port asked for listens. */
  ready: boolean;
  exit: GuestExit;
  /** Frames dropped because nobody read them. */
  dropped: number;
  version: string;
}

/** What a guest needs to run its app. */
export interface GuestConfig {
  hostname: string;
  /** The command, program first. */
  args: string[];
  env: Record<string, string>;
  /** `user[:group]`; empty is root. */
  user: string;
  workdir: string;
  network: GuestNetwork;
  /** TCP ports whose listening makes the app ready. */
  ports: number[];
  /** Disks by their serial numbers, and where their file systems are mounted. */
  volumes: { serial: string; path: string }[];
}

/** A command for the guest. `env` goes over the app's; `user` and `workdir` are the app's when absent. */
export interface CommandSpec {
  /** Program first; looked up in PATH. Not needed with `hooks`. */
  args: string[];
  env?: Record<string, string>;
  user?: string;
  workdir?: string;
  /** Give it a terminal of this size, in characters, for its input and output. */
  terminal?: { rows: number; columns: number };
  /** Whether it has an input; /dev/null otherwise. */
  input?: boolean;
  /** Of the machine's own time, which stands while it sleeps; then the command is killed with its group. 0 is never. */
  timeoutMs?: number;
  /** Instead of `args`: run the programs of this folder in the order of their names, as root. */
  hooks?: string;
}

/** How a command ended. */
export interface CommandExit {
  code: number;
  /** The number of the signal that ended it; 0 for none. */
  signal: number;
  /** It was killed with its process group because its time was over. */
  timedOut: boolean;
  /** Why it was never started. */
  failure: string | undefined;
}

/** Sends one frame to the agent. */
export type SendFrame = (type: number, payload: Uint8Array, stream: number) => void;

/** What a stream needs of its surroundings. */
export interface StreamLink {
  send(type: number, payload?: Uint8Array): void;
  /** The stream is over; nothing more will come for it. */
  forget(): void;
}

/** One end of a stream. */
export interface StreamEnd {
  receive(frame: Frame): void;
  /** The guest is gone. */
  fail(error: Error): void;
}
