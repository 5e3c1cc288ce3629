/** The meaning of an app file, independent of the form it was written in. */
import type { ProxyProtocolVersion, TcpHandler } from "@hibernaut/domain/tcp-handlers";
import type { Builder } from "../build/detect.ts";
import type { Strategy } from "../deploy/strategies.ts";

/** A parsed app file. Absent values are undefined: the platform's defaults apply. */
export interface AppFile {
  app: string | undefined;
  primaryRegion: string | undefined;
  image: string | undefined;
  /** How to build an image, if the file has none. */
  build: Build;
  env: Record<string, string>;
  /** At least one; in the order of the file. */
  groups: ProcessGroup[];
  /** Replacements for the image's entry point and command; a group's command overrides `cmd`. */
  init: { entrypoint: string[] | undefined; cmd: string[] | undefined; exec: string[] | undefined };
  services: Service[];
  checks: Check[];
  mounts: Mount[];
  files: FileEntry[];
  sizes: Size[];
  restarts: Restart[];
  schedules: Schedule[];
  killSignal: string | undefined;
  /** Seconds. */
  killTimeout: number | undefined;
  swapMb: number | undefined;
  /** Whether a stop keeps what machines wrote to their file systems. */
  keepLayer: boolean | undefined;
  onHostLoss: "wait" | "recreate" | undefined;
  /** Whether anyone may see how the app is. Undefined: as it was. */
  statusPage: boolean | undefined;
  deploy: Deploy;
}

/** How the image of the directory is built. */
export interface Build {
  /** Undefined: whatever fits the directory. */
  builder: Builder | undefined;
  /** Relative to the directory of the app file. */
  dockerfile: string | undefined;
  /** The stage of the Dockerfile. */
  target: string | undefined;
  /** Variables of the Dockerfile. */
  args: Record<string, string>;
  /** The file to read in place of `.dockerignore`, relative to the directory of the app file. */
  ignorefile: string | undefined;
}

/** How a deploy goes. */
export interface Deploy {
  strategy: Strategy | undefined;
  /** How many running machines of a group are replaced at a time: a number, or a part of them below 1. */
  maxUnavailable: number | undefined;
  /** How long a machine may take to pass, in seconds. */
  waitTimeout: number | undefined;
  /** Whether sleeping machines get a snapshot of the new version at once, and what they wait for. */
  prewarm: boolean | "prepared" | undefined;
  /** What runs once before any machine is changed. */
  releaseCommand: ReleaseCommand | undefined;
}

/** A command that runs in a machine of its own. */
export interface ReleaseCommand {
  command: string[];
  /** Seconds. */
  timeout: number | undefined;
  size: Omit<Size, "groups"> | undefined;
}

/** Machines of an app that run the same command. */
export interface ProcessGroup {
  name: string;
  /** Undefined: the image's command. */
  command: string[] | undefined;
}

/** A port of the app. */
export interface Service {
  groups: string[];
  internalPort: number;
  /** `web`: HTTP on port 80 or 443; `other`: HTTP on another port; `tcp`: TCP ports; `private`: no port at all. */
  reach: "web" | "other" | "tcp" | "private";
  ports: TcpPort[];
  autostop: "suspend" | "stop" | "off" | undefined;
  autostopFallback: "stop" | "off" | undefined;
  autostart: boolean | undefined;
  minMachinesRunning: number | undefined;
  /** Seconds. */
  idleTimeout: number | undefined;
  /** Seconds. */
  keepWarm: number | undefined;
  placement: "shared" | "pinned" | undefined;
  machineHostnames: boolean | undefined;
  /** Names of other apps. */
  replayFrom: string[] | undefined;
  forceHttps: boolean | undefined;
  wakePage: boolean | undefined;
  /** Whether the app speaks HTTP/2 without TLS. */
  h2Backend: boolean | undefined;
  /** What replaces the app's own headers; false removes them. */
  responseHeaders: Record<string, string | string[] | false> | undefined;
  /** Whether a connection that is open, but silent, keeps the machine awake. */
  idle: "open" | "quiet" | undefined;
  concurrency: Concurrency | undefined;
}

/** A TCP port of the proxy. */
export interface TcpPort {
  port: number;
  /** What the proxy does with a connection. */
  handlers: TcpHandler[];
  proxyProtocol: ProxyProtocolVersion | undefined;
}

/** How much a machine takes at once. */
export interface Concurrency {
  type: "requests" | "connections";
  softLimit: number | undefined;
  hardLimit: number | undefined;
}

/** A health check. Times are seconds. */
export interface Check {
  name: string;
  groups: string[];
  type: "http" | "tcp";
  port: number;
  interval: number | undefined;
  timeout: number | undefined;
  gracePeriod: number | undefined;
  method: string | undefined;
  path: string | undefined;
  headers: Record<string, string>;
}

/** A volume and its mount point. */
export interface Mount {
  groups: string[];
  source: string;
  destination: string;
  /** Whole gigabytes. */
  sizeGb: number | undefined;
  /** Days. */
  snapshotRetention: number | undefined;
  scheduledSnapshots: boolean | undefined;
}

/** A file that is written into the machines of some groups. */
export interface FileEntry {
  groups: string[];
  guestPath: string;
  /** Where the content comes from: a file next to the app file, base64, or a secret of the app. */
  content: { local: string } | { raw: string } | { secret: string };
  /** The path of its table, for findings. */
  at: string;
}

/** The size of the machines of some groups. */
export interface Size {
  /** Empty: every group that no other size names. */
  groups: string[];
  cpus: number | undefined;
  memoryMb: number | undefined;
}

/** When the machines of some groups are started. */
export interface Schedule {
  groups: string[];
  /** `hourly`, `daily`, `weekly`, `monthly`, or a cron expression. */
  when: string;
  timezone: string | undefined;
}

/** What happens when the app of some groups exits. */
export interface Restart {
  groups: string[];
  policy: "no" | "on-failure" | "always" | undefined;
  maxRetries: number | undefined;
}
