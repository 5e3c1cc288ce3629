/**
 * Every setting of the platform: its environment variable, its default and the reason for it.
 * A file (`<config folder>/settings.json`, same names) is read first, the environment overrides it.
 */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { HibernautError } from "./domain/errors.ts";
import { isPrivate, parseSubnet } from "./lib/ipv4.ts";
import { parseMegabytes, parseSeconds } from "./lib/quantities.ts";

export interface Listen {
  host: string;
  port: number;
}

export interface Settings {
  /** Database, images, machines. `/var/lib/hibernaut` as root, else `$XDG_DATA_HOME/hibernaut`. */
  dataDir: string;
  /** Loopback by default: the API starts programs, so it is not offered to a network by accident. */
  apiListen: Listen;
  /** Where apps are reached over HTTP. */
  proxyListen: Listen;
  /** `inside`: the proxy runs with the control plane. `outside`: in processes of its own, started with `hibernaut proxy`. */
  proxy: "inside" | "outside";
  /** Host names that end with one of these are `<app>.<suffix>`. `localhost` resolves to this host everywhere. */
  proxySuffixes: readonly string[];
  /** Where apps are reached over TLS; nowhere when absent. */
  proxyTlsListen: Listen | undefined;
  /** Certificates and keys, `<host name>.crt` and `<host name>.key`; `default` for every other name. */
  proxyTlsFolder: string;
  /** Addresses and networks of proxies in front of this one: their X-Forwarded-For is believed, nobody else's. */
  proxyTrusted: readonly string[];
  /** How long a request waits for its machine, in milliseconds: a cold start under emulation on a busy host ends within it. */
  proxyHoldTimeoutMs: number;
  /** Requests of one app that wait at once: each holds a connection and some KB. */
  proxyMaxHeld: number;
  /** How long a running machine's port may take to answer, in milliseconds. */
  proxyConnectTimeoutMs: number;
  /** How long a machine that is stopped or updated may finish the requests that are open on it, in milliseconds. */
  drainTimeoutMs: number;
  /** Where a proxy in a process of its own offers its metrics; nowhere when absent. */
  proxyMetricsListen: Listen | undefined;
  /** Name reported by `GET /v1/platform/regions` and given to machines. */
  region: string;
  /** How often machines are looked at for idleness, in seconds. */
  idleCheckIntervalS: number;
  /** Machines with more memory are stopped instead of suspended: their snapshot costs too much disk and time. */
  suspendMaxMemoryMb: number;
  /** Size of a machine's writable layer; sparse, so it costs only what is written. */
  layerSizeMb: number;
  /** `auto` proves KVM by booting the guest bundle and falls back to software emulation. */
  accelerator: "auto" | "kvm" | "tcg";
  /** `auto` sets up the bridge and falls back to QEMU's own network where that fails, as it does without root. */
  network: "auto" | "bridge" | "user";
  /** Of the bridge, `a.b.c.d/n`; `auto` is a free one, the same after a restart. */
  networkSubnet: string;
  /** The QEMU program. */
  qemu: string;
  /** Folder that holds the guest bundle which the set-up built. */
  guestBundle: string;
  /** From power on to the agent's first word: 3 s quiet under emulation, ten times that on a loaded host. */
  bootTimeoutMs: number;
  /** From the agent's first word to the app listening; after it the machine counts as running all the same. */
  readyTimeoutMs: number;
  /** Loading and waking a snapshot takes a quarter of a second; a resume that takes longer becomes a cold start. */
  resumeTimeoutMs: number;
  /** Taking a snapshot; the flush of a large memory file to a slow disk is the long part. */
  suspendTimeoutMs: number;
  /** What an image runs after a resume, before requests come: a wake is judged by its milliseconds. */
  hookTimeoutMs: number;
  /** The longest that an app may ask to be kept awake at once, in seconds; it may ask again. */
  keepAwakeMaxS: number;
  /** Registries that may speak plain HTTP, or show a certificate nobody vouches for; those on loopback always may. */
  insecureRegistries: readonly string[];
  /** Downloaded layers kept for the next import, in MB: an app's next version shares most of them. */
  layerCacheMb: number;
  /** How long an image that no machine needs is kept, in hours: going back to yesterday's version downloads nothing. */
  imageKeepH: number;
  /** What the log of one machine may take on disk, in MB: enough for a day of a talkative app, times all machines. */
  logMaxMb: number;
  logLevel: "debug" | "info" | "warn" | "error" | "silent";
  /** `auto`: lines for people where standard error is a terminal, else JSON. */
  logFormat: "auto" | "text" | "json";
}

/** What the kernel takes as the path of a Unix socket, in bytes. */
export const MAX_SOCKET_PATH = 107;
/** The longest of ours, below the data folder. */
export const LONGEST_SOCKET = "/run/00000000000000/capture.sock";

type Parse<T> = (text: string, name: string) => T;

interface Setting<T> {
  env: string;
  fallback(environment: NodeJS.ProcessEnv): T;
  parse: Parse<T>;
}

/** A host name in lower case. */
const SUFFIX = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;
/** A host as references name it, with its port. */
const REGISTRY = /^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d{1,5})?$/;

/** What a plain number counts in settings that are times. */
const DURATIONS = {
  ms: { seconds: 0.001, name: "milliseconds", examples: "500ms, 5s or 1m" },
  s: { seconds: 1, name: "seconds", examples: "30s, 5m or 1h" },
  h: { seconds: 3600, name: "hours", examples: "12h or 48h" },
} as const;

const bundled = join(import.meta.dirname, "../../guest/.build/bundle");

const SETTINGS: { [K in keyof Settings]: Setting<Settings[K]> } = {
  dataDir: { env: "HIBERNAUT_DATA_DIR", fallback: defaultDataDir, parse: path },
  apiListen: { env: "HIBERNAUT_API_LISTEN", fallback: () => ({ host: "127.0.0.1", port: 4280 }), parse: listen },
  proxyListen: { env: "HIBERNAUT_PROXY_LISTEN", fallback: () => ({ host: "127.0.0.1", port: 8080 }), parse: listen },
  proxy: { env: "HIBERNAUT_PROXY", fallback: () => "inside", parse: oneOf("inside", "outside") },
  proxySuffixes: { env: "HIBERNAUT_PROXY_SUFFIXES", fallback: () => ["localhost"], parse: list(SUFFIX, "host names") },
  proxyTlsListen: { env: "HIBERNAUT_PROXY_TLS_LISTEN", fallback: () => undefined, parse: listen },
  proxyTlsFolder: {
    env: "HIBERNAUT_PROXY_TLS_FOLDER",
    fallback: (environment) => join(configFolder(environment), "certificates"),
    parse: path,
  },
  proxyTrusted: {
    env: "HIBERNAUT_PROXY_TRUSTED",
    fallback: () => [],
    parse: list(/^[0-9a-fA-F.:]+(?:\/\d{1,3})?$/, "addresses or networks such as 10.0.0.0/8"),
  },
  proxyHoldTimeoutMs: {
    env: "HIBERNAUT_PROXY_HOLD_TIMEOUT_MS",
    fallback: () => 60_000,
    parse: duration("ms", 100, 600_000),
  },
  proxyMaxHeld: { env: "HIBERNAUT_PROXY_MAX_HELD", fallback: () => 10_000, parse: integer(1, 1_000_000) },
  proxyConnectTimeoutMs: {
    env: "HIBERNAUT_PROXY_CONNECT_TIMEOUT_MS",
    fallback: () => 10_000,
    parse: duration("ms", 10, 600_000),
  },
  drainTimeoutMs: { env: "HIBERNAUT_DRAIN_TIMEOUT_MS", fallback: () => 5_000, parse: duration("ms", 0, 600_000) },
  proxyMetricsListen: { env: "HIBERNAUT_PROXY_METRICS_LISTEN", fallback: () => undefined, parse: listen },
  region: {
    env: "HIBERNAUT_REGION",
    fallback: () => "local",
    parse: matching(/^[a-z0-9-]{1,32}$/, "1 to 32 of a-z, 0-9 and -"),
  },
  idleCheckIntervalS: { env: "HIBERNAUT_IDLE_CHECK_INTERVAL", fallback: () => 60, parse: duration("s", 1, 3600) },
  suspendMaxMemoryMb: {
    env: "HIBERNAUT_SUSPEND_MAX_MEMORY_MB",
    fallback: () => 2048,
    parse: megabytes(128, 1_048_576),
  },
  layerSizeMb: { env: "HIBERNAUT_LAYER_SIZE_MB", fallback: () => 8192, parse: megabytes(64, 1_048_576) },
  accelerator: { env: "HIBERNAUT_ACCELERATOR", fallback: () => "auto", parse: oneOf("auto", "kvm", "tcg") },
  network: { env: "HIBERNAUT_NETWORK", fallback: () => "auto", parse: oneOf("auto", "bridge", "user") },
  networkSubnet: { env: "HIBERNAUT_NETWORK_SUBNET", fallback: () => "auto", parse: subnet },
  qemu: { env: "HIBERNAUT_QEMU", fallback: () => "qemu-system-x86_64", parse: (text) => text },
  guestBundle: { env: "HIBERNAUT_GUEST_BUNDLE", fallback: () => bundled, parse: path },
  bootTimeoutMs: { env: "HIBERNAUT_BOOT_TIMEOUT_MS", fallback: () => 60_000, parse: duration("ms", 1000, 600_000) },
  readyTimeoutMs: { env: "HIBERNAUT_READY_TIMEOUT_MS", fallback: () => 30_000, parse: duration("ms", 0, 600_000) },
  resumeTimeoutMs: { env: "HIBERNAUT_RESUME_TIMEOUT_MS", fallback: () => 15_000, parse: duration("ms", 500, 600_000) },
  suspendTimeoutMs: {
    env: "HIBERNAUT_SUSPEND_TIMEOUT_MS",
    fallback: () => 60_000,
    parse: duration("ms", 1000, 600_000),
  },
  hookTimeoutMs: { env: "HIBERNAUT_HOOK_TIMEOUT_MS", fallback: () => 5_000, parse: duration("ms", 100, 60_000) },
  keepAwakeMaxS: { env: "HIBERNAUT_KEEPALIVE_MAX_TTL", fallback: () => 3600, parse: duration("s", 1, 604_800) },
  insecureRegistries: {
    env: "HIBERNAUT_INSECURE_REGISTRIES",
    fallback: () => [],
    parse: list(REGISTRY, "names of registries such as registry.lan:5000"),
  },
  layerCacheMb: { env: "HIBERNAUT_LAYER_CACHE_MB", fallback: () => 2048, parse: megabytes(0, 1_048_576) },
  imageKeepH: { env: "HIBERNAUT_IMAGE_KEEP_HOURS", fallback: () => 24, parse: duration("h", 0, 8760) },
  logMaxMb: { env: "HIBERNAUT_LOG_MAX_MB", fallback: () => 16, parse: megabytes(1, 10_240) },
  logLevel: {
    env: "HIBERNAUT_LOG_LEVEL",
    fallback: () => "info",
    parse: oneOf("debug", "info", "warn", "error", "silent"),
  },
  logFormat: { env: "HIBERNAUT_LOG_FORMAT", fallback: () => "auto", parse: oneOf("auto", "text", "json") },
};

/** The names of all settings, for documents and `doctor`. */
export const SETTING_NAMES: readonly string[] = Object.values(SETTINGS).map((setting) => setting.env);

/**
 * Reads the settings. Throws `invalid_argument` that names the setting and what it would accept.
 *
 * @example
 * const settings = readSettings(process.env);
 */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const { values: file } = readSettingsFile(environment);
  const read = <T>({ env, fallback, parse }: Setting<T>): T => {
    const text = environment[env] ?? file[env];
    return text === undefined || text === "" ? fallback(environment) : parse(String(text), env);
  };
  const entries = Object.entries(SETTINGS).map(([key, setting]) => [key, read(setting as Setting<unknown>)]);
  return Object.fromEntries(entries) as Settings;
}

/** The file of settings and what is in it; nothing when there is none. */
export function readSettingsFile(environment: NodeJS.ProcessEnv): { file: string; values: Record<string, unknown> } {
  const file = join(configFolder(environment), "settings.json");
  return { file, values: readFile(file) };
}

/** Folder of `config.json` (the CLI's) and `settings.json`. */
export function configFolder(environment: NodeJS.ProcessEnv): string {
  return join(environment.XDG_CONFIG_HOME || join(environment.HOME ?? homedir(), ".config"), "hibernaut");
}

function defaultDataDir(environment: NodeJS.ProcessEnv): string {
  if (process.getuid?.() === 0) return "/var/lib/hibernaut";
  return join(environment.XDG_DATA_HOME || join(environment.HOME ?? homedir(), ".local/share"), "hibernaut");
}

function readFile(file: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw bad(file, "a readable file");
  }
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
  } catch {
    // said below, in the same words as any other wrong content
  }
  throw bad(file, "a JSON object of settings");
}

function bad(name: string, wanted: string): HibernautError {
  return new HibernautError("invalid_argument", `${name} must be ${wanted}.`, { setting: name });
}

function path(text: string, name: string): string {
  if (!isAbsolute(text)) throw bad(name, "an absolute path");
  return text;
}

function listen(text: string, name: string): Listen {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) throw bad(name, "host:port, with port 0 for any free one");
  return { host: match[1] ?? match[2] ?? "", port };
}

/** `auto`, or a private IPv4 subnet from /22, which is as many machines as a bridge has room for, to /28. */
function subnet(text: string, name: string): string {
  const parsed = parseSubnet(text);
  const fits = parsed !== undefined && parsed.prefix >= 22 && parsed.prefix <= 28 && isPrivate(parsed);
  if (text === "auto" || fits) return text;
  throw bad(name, "auto, or a private IPv4 subnet from /22 to /28, e.g. 10.99.0.0/22");
}

function integer(minimum: number, maximum: number): Parse<number> {
  const wanted = `a whole number from ${minimum} to ${maximum}`;
  return whole(minimum, maximum, { wanted, read: (text) => (/^\d+$/.test(text) ? Number(text) : undefined) });
}

/** A number counts `unit`; a time with a unit of its own must be whole in it. */
function duration(unit: keyof typeof DURATIONS, minimum: number, maximum: number): Parse<number> {
  const { seconds, name, examples } = DURATIONS[unit];
  const wanted = `a time of ${minimum} to ${maximum} ${name}, as a whole number of them or with a unit: ${examples}`;
  const read = (text: string) => {
    if (/^\d+$/.test(text)) return Number(text);
    const found = parseSeconds(text, "s");
    return /[a-z]/.test(text) && found !== undefined ? rounded(found / seconds) : undefined;
  };
  return whole(minimum, maximum, { wanted, read });
}

/** A number counts MB. */
function megabytes(minimum: number, maximum: number): Parse<number> {
  const wanted = `a size of ${minimum} to ${maximum} MB, as a whole number of them or with a unit: 512mb or 2gb`;
  return whole(minimum, maximum, { wanted, read: (text) => parseMegabytes(text, "m") });
}

function whole(
  minimum: number,
  maximum: number,
  { wanted, read }: { wanted: string; read(text: string): number | undefined },
): Parse<number> {
  return (text, name) => {
    const value = read(text);
    if (value === undefined || !Number.isInteger(value) || value < minimum || value > maximum) throw bad(name, wanted);
    return value;
  };
}

/** Without the dust of binary fractions. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** Comma separated, blanks around the commas. */
function list(pattern: RegExp, wanted: string): Parse<string[]> {
  return (text, name) => {
    const items = text.split(",").map((item) => item.trim());
    if (!items.every((item) => pattern.test(item))) throw bad(name, `${wanted}, comma separated`);
    return items;
  };
}

function matching(pattern: RegExp, wanted: string): Parse<string> {
  return (text, name) => {
    if (!pattern.test(text)) throw bad(name, wanted);
    return text;
  };
}

function oneOf<const T extends string>(...values: T[]): Parse<T> {
  return (text, name) => {
    const found = values.find((value) => value === text);
    if (found === undefined) throw bad(name, `one of ${values.join(", ")}`);
    return found;
  };
}
