/** The meaning of an app file, independent of the form it was written in. */
import type { BackupConfig, MachineConfig, ServiceConfig } from "@hibernaut/client";
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
  services: Service[];
  checks: Check[];
  mounts: Mount[];
  files: FileEntry[];
  sizes: Size[];
  restarts: Restart[];
  schedules: Schedule[];
  backups: Backup[];
  /** What holds for all machines, whatever their group. A group's command overrides `init.cmd`. */
  machine: Pick<
    MachineConfig,
    "init" | "stop_config" | "keep_layer" | "worker_idle_timeout" | "auto_destroy" | "on_host_loss" | "network"
  >;
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
  /** Whether the release is kept as a template, of which further machines are made. */
  template: boolean | undefined;
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
  /** `web`: HTTP on port 80 or 443; `other`: HTTP on another port; `tcp`: TCP ports; `private`: no port at all. */
  reach: "web" | "other" | "tcp" | "private";
  /** Whether the file names `internal_port`. Otherwise it is what the reader was told to assume. */
  portNamed: boolean;
  config: ServiceConfig;
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

/** What the machines of some groups do for their backups. */
export interface Backup {
  groups: string[];
  config: BackupConfig;
}

/** What happens when the app of some groups exits. */
export interface Restart {
  groups: string[];
  policy: "no" | "on-failure" | "always" | undefined;
  maxRetries: number | undefined;
}
