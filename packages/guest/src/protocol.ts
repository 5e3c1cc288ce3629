/**
 * The vocabulary of the agent channel on the host: the app to run, how it ended, commands, and the ends of a stream.
 * `packages/guest/agent/` is the guest's side.
 */
import type { GuestFile } from "@hibernaut/domain/guest-files";
import type { GuestNetwork } from "@hibernaut/domain/guest-network";
import type { Frame } from "./frame.ts";

/** How the app ended. */
export interface GuestExit {
  code: number;
  /** Number of the signal that ended the app, or 0. */
  signal: number;
  /** Whether the kernel killed the app because memory ran out. */
  oom: boolean;
}

/** What the agent says about itself and its app. */
export interface Hello {
  phase: "waiting" | "running" | "ended";
  /** Whether the app listens on every port of the configuration. */
  ready: boolean;
  exit: GuestExit;
  /** How many frames were dropped because no platform read them. */
  dropped: number;
  /** Version of the agent. */
  version: string;
}

/** What a guest needs to run its app. */
export interface GuestConfig {
  hostname: string;
  /** The program and its arguments. */
  args: string[];
  env: Record<string, string>;
  /** `user[:group]`. Empty: root. */
  user: string;
  workdir: string;
  network: GuestNetwork;
  /** The app is ready when it listens on all of these TCP ports. */
  ports: number[];
  /** Disks by serial number, and where their file systems are mounted. */
  volumes: { serial: string; path: string }[];
  /** Swap on the writable layer, in MB. Agents before protocol 3 have none. Default: 0. */
  swapMb?: number;
  /** Written before the app starts. Default: none. */
  files?: GuestFile[];
}

/** Who a machine is. What the memory of another machine, from which it was forked, cannot know. */
export interface GuestIdentity extends Pick<GuestConfig, "hostname" | "env" | "network"> {
  /** MAC address of its interface. */
  mac: string;
}

/** The first version of the protocol whose agents can become another machine. */
export const FORKS_PROTOCOL = 5;

/** The first version of the protocol whose agents have tasks. */
export const TASKS_PROTOCOL = 4;

/** The first version of the protocol whose agents serve sandboxes: process ids, logins, kept commands, and tasks for files. */
export const SANDBOX_PROTOCOL = 6;

/** What agents do themselves, so that an image needs no program for it: `packages/guest/agent/task.h`. */
export type TaskName = "stat" | "copy-out" | "copy-in" | "connect" | "app-signal" | "ps" | FileTaskName;

/** How a task ends that the agent does not know, because it is older than the task: `TASK_UNKNOWN` of `task.h`. */
export const TASK_UNKNOWN = 125;

/** How `app-signal` ends: `enum app_task_exit` in `packages/guest/agent/app.h`. */
export const AppTaskExit = { done: 0, failed: 1, notRunning: 2 } as const;

/** Tasks for files, from {@link SANDBOX_PROTOCOL} on: `packages/guest/agent/fs.h`. */
export type FileTaskName =
  | "fs-stat"
  | "fs-list"
  | "fs-mkdir"
  | "fs-move"
  | "fs-remove"
  | "fs-read"
  | "fs-write"
  | "fs-compose"
  | "fs-watch";

/** How tasks for files end: `enum fs_exit` in `packages/guest/agent/fs.h`. */
export const FsExit = {
  done: 0,
  failed: 1,
  notFound: 2,
  refused: 3,
  exists: 4,
  notDirectory: 5,
  isDirectory: 6,
  noSpace: 7,
  unknownUser: 8,
} as const;

/** A command to run in the guest. */
export interface CommandSpec {
  /** The program, looked up in PATH, and its arguments. Ignored with `hooks`. */
  args: string[];
  /** In addition to the app's environment, and with precedence over it. */
  env?: Record<string, string>;
  /** `user[:group]`. Default: the app's. */
  user?: string;
  /** Default: the app's. */
  workdir?: string;
  /**
   * Run the command as its user logs in: HOME, USER and LOGNAME are the user's, and the directory, which has to exist, is
   * relative to the user's home. From {@link SANDBOX_PROTOCOL} on.
   */
  login?: true;
  /**
   * Keep the command when this platform ends: the next one is told of it, with this label of at most 8192 bytes. Not for
   * tasks and hooks. From {@link SANDBOX_PROTOCOL} on.
   */
  label?: Buffer;
  /** Run the command on a terminal of this size, in characters. */
  terminal?: { rows: number; columns: number };
  /** Whether the command has an input. Otherwise it reads from /dev/null. */
  input?: boolean;
  /**
   * Milliseconds of the machine's own time, which stops while the machine sleeps. The command and its process group are
   * killed after that. 0: no limit.
   */
  timeoutMs?: number;
  /** Let the agent carry out a task of its own, as root, with `args` as arguments. From {@link TASKS_PROTOCOL} on. */
  task?: TaskName;
  /** Run the programs in this directory, in the order of their names, as root. */
  hooks?: string;
}

/** How a command ended. */
export interface CommandExit {
  code: number;
  /** Number of the signal that ended the command, or 0. */
  signal: number;
  /** Whether the command was killed because its time was up. */
  timedOut: boolean;
  /** Why the command could not be started. */
  failure: string | undefined;
}

/** A command that an earlier platform started, as the agent announces it. */
export interface KeptCommand {
  /** Whether it has a terminal. */
  terminal: boolean;
  /** Whether its input may still be written. */
  input: boolean;
}

/** Sends one frame to the agent. */
export type SendFrame = (type: number, payload: Uint8Array, stream: number) => void;

/** What a stream uses to send. */
export interface StreamLink {
  send(type: number, payload?: Uint8Array): void;
  /** Forgets the stream, because it is over. */
  forget(): void;
}

/** One end of a stream. */
export interface StreamEnd {
  /** Takes a frame of this stream. */
  receive(frame: Frame): void;
  /** Ends the stream because the guest is gone. */
  fail(error: Error): void;
}
