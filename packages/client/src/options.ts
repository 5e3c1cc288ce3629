/** What the client's methods take besides names and bodies. Names are those of the API's queries. */
import type { CallOptions, ListOptions } from "./transport.ts";
import type {
  HostDrainProgress,
  LogEntry,
  LogStream,
  MachineState,
  MoveProgress,
  PullProgress,
  SandboxRequest,
  Scope,
  UploadProgress,
  UsageReport,
  WaitState,
} from "./types.ts";

/** Whether to destroy what is still in use. */
export interface DestroyOptions extends CallOptions {
  /** Default: false. */
  force?: boolean;
}

/** Where a new app is. */
export interface CreateAppOptions extends CallOptions {
  /** The network that its machines share with those of the apps that name the same one. It is never changed. Default: none. */
  network?: string;
  /** What it is called there besides its own name. */
  aliases?: readonly string[];
  /** Other apps of the network that a request which wakes it wakes as well. */
  wakes?: readonly string[];
}

/** How long a preview is kept, and what it gets. */
export interface PutPreviewOptions extends CallOptions {
  /** Seconds from now. Default: the platform's. */
  ttl?: number;
  /** Give it the secrets of the app, with their values. Default: false. */
  copy_secrets?: boolean;
  /** Have it share a network with the previews of the same name of the apps in its production's network. Default: as it is, at first not. */
  network?: boolean;
  /** With `network`: what it is called there besides its own name. */
  aliases?: string[];
  /** With `network`: the apps there that a request which wakes it wakes as well. */
  wakes?: string[];
}

/** What happens to a certificate that is removed. */
export interface RevokeOptions extends CallOptions {
  /** Have its authority declare it invalid first. Default: false. */
  revoke?: boolean;
}

/** Why a machine is started. */
export interface StartOptions extends CallOptions {
  /** For the machine's history. Default: none. */
  reason?: string;
}

/** How a machine is stopped, in place of its `stop_config`. */
export interface StopOptions extends CallOptions {
  /** The signal that asks the app to exit, such as `SIGINT`. `signal` is what aborts the call. */
  stopSignal?: string | undefined;
  /** Seconds after which the app is killed, 0 to 300. */
  timeout?: number | undefined;
}

/** How long a lease lasts, and what it is for. */
export interface LeaseOptions extends CallOptions {
  /** Seconds, 1 to 86400. Default: 60. */
  ttl?: number | undefined;
  /** For people, up to 200 characters. Default: none, or of a lease that is renewed, what it has. */
  description?: string | undefined;
}

/** Which machines are listed: those of which all of this holds. */
export interface ListMachinesOptions extends ListOptions {
  /** One of these states. Default: any. */
  state?: MachineState | readonly MachineState[] | undefined;
  /** Default: any. */
  region?: string | undefined;
  /** Values that its metadata have, by key. Default: none. */
  metadata?: Readonly<Record<string, string>> | undefined;
}

/** In which order processes are listed. */
export interface ProcessOptions extends CallOptions {
  /** Default: `pid`. */
  sort_by?: "pid" | "stime" | "rtime" | "cpu" | "rss" | "command" | "directory";
  /** Default: `asc`. */
  order?: "asc" | "desc";
}

/** What happens to a sleeping machine that is updated. */
export interface UpdateOptions extends CallOptions {
  /**
   * Start it with the new configuration, and let it sleep again once it is healthy; with `"prepared"`, once a program in
   * it has said that it is prepared, too. Default: false, it sleeps on without a snapshot.
   */
  prewarm?: boolean | "prepared";
}

/** Whether to change anything. */
export interface DryRunOptions extends CallOptions {
  /** Change nothing and return what would happen. Default: false. */
  dry_run?: boolean;
}

/** How much of a list to return. */
export interface LimitOptions extends CallOptions {
  /** Return at most this many, 1 to 1000. */
  limit?: number;
}

/** Who is told how far a pull is. */
export interface PullOptions extends CallOptions {
  /** Is called for every step and, during a download, repeatedly. */
  onProgress?(progress: PullProgress): void;
}

/** Where a machine goes, and who is told how far it is. */
export interface MoveOptions extends CallOptions {
  /** The host to move to. Default: the one with the most room. */
  host?: string | undefined;
  /** Move without the memory: the machine starts from scratch there, with its files. Default: false. */
  cold?: boolean | undefined;
  /** Move its volumes and their snapshots along. Default: false; a machine with a volume is not moved. */
  withVolumes?: boolean | undefined;
  /** Is called for every step and, during the copy, repeatedly. */
  onProgress?(progress: MoveProgress): void;
}

/** Who is told how far the drain of a host is. */
export interface HostDrainOptions extends CallOptions {
  /** Move machines with volumes, too, and their volumes with them. Default: false; they stay. */
  withVolumes?: boolean | undefined;
  /** Is called for every step of every machine and, during copies, repeatedly. */
  onProgress?(progress: HostDrainProgress): void;
}

/** An image on this machine. It must not change while it is uploaded. */
export interface ImageSource {
  /** What the reference will show, such as `shop:latest`. */
  name: string;
  /** The manifest for linux/amd64, exactly as its digest is computed. It names the other parts with their sizes. */
  manifest: string;
  /** Reads the configuration or a layer, from the byte with that number on. May be called again after a failure. */
  read(digest: string, offset: number): AsyncIterable<Uint8Array>;
}

/** Who is told how far an upload is, and how long to wait after a failure. */
export interface UploadOptions extends CallOptions {
  /** Is called for every layer that exists, for every step and, while bytes are sent, repeatedly. */
  onProgress?(progress: UploadProgress): void;
  /** Milliseconds before the first new attempt, doubled before each further one. Default: 500. */
  retryMs?: number;
}

/** What to wait for, and how long. */
export interface WaitOptions extends CallOptions {
  /** The state, or any of several. Default: `running`. */
  state?: WaitState | readonly WaitState[];
  /** Seconds, 1 to 300. Default: 60. */
  timeout?: number;
}

/** Which days to report. */
export interface MachineUsageOptions extends CallOptions {
  /** A time (RFC 3339), a date, or an age such as `12h` or `30d`. Default: 30 days before `to`. */
  from?: string;
  /** The same. Default: now. */
  to?: string;
}

/** Which usage to report, and what each row is about. */
export interface UsageOptions extends MachineUsageOptions {
  /** Default: `app`. */
  group_by?: UsageReport["group_by"];
  /** Only this app, which may have been destroyed. Default: all. */
  app?: string;
}

/** Which changes to read. */
export interface AuditOptions extends CallOptions {
  /** Only what concerns this app. */
  app?: string;
  /** Only what this token did: its id or its name. */
  token?: string;
  /** From then on: a time (RFC 3339), or an age such as `10m` or `7d`. */
  since?: string;
  /** The last lines, this many. Default: 100, or 10000 with `since`. */
  limit?: number;
  /** Continue as changes come. Default: false. */
  follow?: boolean;
}

/** Which machines, and how far back. */
export interface TimelineOptions extends CallOptions {
  /** 1 to 168. Default: 24. */
  hours?: number;
  /** Only machines of this app. */
  app?: string;
}

/** What a new token may do, and for how long. */
export interface NewTokenOptions extends CallOptions {
  /** Default: `admin`, which includes all. */
  scopes?: Scope[];
  /** The only apps that it reaches. Default: all, and the platform itself. */
  apps?: string[];
  /** Whether it is limited to the previews of these apps, which it may make. Default: false. */
  previews?: boolean;
  /** Seconds. Default: forever. */
  expires_in?: number;
  /** A key for E2B's clients, which accept only a form of their own. It belongs to one app, and has `deploy` and `exec` unless `scopes` says otherwise. Default: false. */
  e2b?: boolean;
}

/** How a token is rotated. */
export interface RotateTokenOptions extends CallOptions {
  /** Seconds for which the old token stays valid. Default: a day. */
  overlap?: number;
  /** Seconds for which the new one is valid. Default: as long as the old one was when it was made. */
  expires_in?: number;
}

/** How the secret of a webhook is rotated. */
export interface RotateWebhookOptions extends CallOptions {
  /** Seconds for which the old secret signs, too. Default: a day. */
  overlap?: number;
}

/** How to run the command of a release. */
export interface ReleaseCommandOptions extends CallOptions {
  /** Seconds from the creation of its machine to its end. Default: 300. */
  timeout?: number;
  /** Called with each line of the machine's log, as it comes. */
  onLine?(entry: LogEntry): void;
}

/** Which lines of an app's logs to read. */
export interface LogsOptions extends CallOptions {
  /** Machines by id, name, or the beginning of the id. Default: all machines of the app. */
  machine?: string | readonly string[];
  /** Default: all streams. */
  stream?: LogStream | readonly LogStream[];
  /** Read at most this many of the last lines, 0 to 10000. Default: 100, or 10000 with `since`. */
  limit?: number;
  /** Read lines from then on: a time (RFC 3339), or an age such as `30s`, `10m`, `2h`, `1d`. */
  since?: string;
}

/** How to copy files into a machine. */
export interface WriteArchiveOptions extends CallOptions {
  /** Whom the files belong to: the image's user, or whom the archive says. Default: `image`. */
  owner?: "image" | "archive";
}

/** What a new sandbox is. Names are those of the API. */
export interface CreateSandboxOptions extends SandboxRequest {
  /** The template that it is made from. Default: `base`. */
  template?: string;
  /** Unique within the app. Default: a generated one. */
  name?: string;
  /** For programs that start in it, in addition to the template's. */
  env?: Record<string, string>;
}
