/** Sandboxes: machines that a program makes, uses and throws away, by the protocol of E2B's clients. */

/** What a sandbox's time ends with. `pause`: it is suspended, and kept until it is destroyed. */
export const SANDBOX_ENDS = ["kill", "pause"] as const;
export type SandboxEnd = (typeof SANDBOX_ENDS)[number];

/** Where programs in a sandbox may connect to. Names are hostnames or `*.` and one. An address that is allowed is never denied. */
export interface SandboxNetwork {
  /** CIDR blocks, addresses and names. */
  allow_out?: string[];
  /** CIDR blocks and addresses. */
  deny_out?: string[];
  /** Whether its ports answer without a token. Absent: yes. */
  allow_public_traffic?: boolean;
  /** The `Host` that its programs see, with `${PORT}` for the port. */
  mask_request_host?: string;
  /** Headers that are added to HTTPS requests, by the name that they are for: encrypted, as `sealHeaders` makes it. */
  rules?: Record<string, string>;
}

/** How programs begin that clients start in a sandbox and say nothing else of. A build of a template sets it. */
export interface ProgramDefaults {
  /** `user[:group]`. Absent: `user`, or the image's own where there is none. */
  user?: string;
  /** An absolute path, to which relative ones belong. Absent: the user's home. */
  workdir?: string;
  /** Below the sandbox's own and the client's. */
  env?: Record<string, string>;
}

/** What makes a machine a sandbox. Times are RFC 3339 in UTC. */
export interface Sandbox {
  /** The template as the client named it. */
  template: string;
  /** The client's own labels. */
  metadata: Record<string, string>;
  /** In addition to its machine's, for each program that is started in it. */
  env: Record<string, string>;
  started_at: string;
  /** When its time is over, if it runs by then. */
  ends_at: string;
  /** How long its client last asked for, in seconds: a request that wakes it gives it that time again. */
  timeout_s: number;
  on_timeout: SandboxEnd;
  /** A pause when its time is over stops it, with its disk. Absent: it is suspended. */
  keep_memory?: false;
  /** It was paused, and is kept until its client wants it again. Absent or false: its time ends it, whatever it does. */
  paused?: boolean;
  /** Whether a request to a paused one wakes it. */
  auto_resume: boolean;
  /** Whether its files and processes need its token. */
  secure: boolean;
  network?: SandboxNetwork;
  /** As the client asked. Absent if it did not. */
  allow_internet_access?: boolean;
}
