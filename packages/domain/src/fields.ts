/**
 * The fields of a machine's configuration that hold one value: each is described here, and nowhere else. From this table
 * come the schema of the API with its types, options of the CLI, keys of the app file and fields of the dashboard's forms.
 * Pure data, and part of the CLI's bundle and of the dashboard's.
 */
import {
  CPUS,
  DEFAULT_CPUS,
  DEFAULT_IDLE_TIMEOUT_S,
  DEFAULT_MEMORY_MB,
  DEFAULT_SOFT_LIMIT,
  HOLD_TIMEOUT_S,
  IDLE_TIMEOUT_S,
  KEEP_WARM_S,
  MEMORY_MB,
  STOP_TIMEOUT_S,
  SUSPEND_TIMEOUT_S,
  SWAP_MB,
} from "./limits.ts";

/** One field. Its kind says which value it has: a number of `count`, `seconds` or `mb`, one of `choices`, or a text. */
export type Field = Described &
  (
    | { kind: "boolean" }
    | { kind: "choice"; choices: readonly string[] }
    | { kind: "count" | "seconds" | "mb"; minimum: number; maximum: number }
    | { kind: "text"; pattern: string }
  );

interface Described {
  /** Sentences. The help of a command shows the first, so that it has to say what the field is. */
  description: string;
  /** What holds without the field, as the documents show it. */
  default: string;
  /** What the CLI calls it: by default the last name of the path, with hyphens. */
  option?: string;
  /** Its key in an app file: by default the last name of the path. Null: the app file has another form for it. */
  key?: string | null;
  /** What a form calls it. Without one, no form has it. */
  label?: string;
}

/** Fields by their path in the configuration, or in a service. */
export type Fields = Readonly<Record<string, Field>>;

/** The value of a field. */
export type ValueOf<F extends Field> = F extends { kind: "boolean" }
  ? boolean
  : F extends { choices: readonly (infer Choice)[] }
    ? Choice
    : F extends { kind: "text" }
      ? string
      : number;

/** The value that holds without a field; undefined where that depends on something else. */
export function defaultOf({ kind, default: text }: Field): boolean | number | string | undefined {
  if (kind === "boolean") return text === "true";
  if (kind === "choice") return text;
  return kind === "text" || Number.isNaN(Number(text)) ? undefined : Number(text);
}

/** Fields of a machine. */
export const MACHINE_FIELDS = {
  "guest.cpus": {
    kind: "count",
    ...CPUS,
    description: "Virtual CPUs.",
    label: "CPUs",
    default: String(DEFAULT_CPUS),
    key: null,
  },
  "guest.memory_mb": {
    kind: "mb",
    ...MEMORY_MB,
    description: "Memory, in MB. A suspend writes what is used of it to disk.",
    label: "Memory, in MB",
    default: String(DEFAULT_MEMORY_MB),
    option: "memory",
    key: null,
  },
  "init.swap_size_mb": {
    kind: "mb",
    ...SWAP_MB,
    description: "Swap on the machine's writable layer, which grows by as much, in MB.",
    default: "0",
    option: "swap",
  },
  "init.user": {
    kind: "text",
    pattern: "^[^\\s:]{1,64}(?::[^\\s:]{1,64})?$",
    description:
      "Whom the app runs as, by name or number, with a group after a colon if it is another than the user's.",
    default: "the image's",
    key: null,
  },
  "init.working_dir": {
    kind: "text",
    pattern: "^/[^\\u0000]{0,1023}$",
    description: "Directory in which the app starts.",
    default: "the image's",
    option: "workdir",
    key: null,
  },
  "restart.max_retries": {
    kind: "count",
    minimum: 0,
    maximum: 1000,
    description: "How many times in a row the restart policy starts the app.",
    default: "10",
    key: null,
  },
  "stop_config.signal": {
    kind: "text",
    pattern: "^SIG[A-Z0-9]+$",
    description: "Signal that asks the app to exit, such as SIGINT.",
    default: "the image's, otherwise SIGTERM",
    option: "stop-signal",
    key: "kill_signal",
  },
  "stop_config.timeout": {
    kind: "seconds",
    ...STOP_TIMEOUT_S,
    description: "How long the app may take to exit before it is killed.",
    default: "5",
    option: "stop-timeout",
    key: "kill_timeout",
  },
  "suspend_config.timeout": {
    kind: "seconds",
    ...SUSPEND_TIMEOUT_S,
    description:
      "How long the app and the programs in /etc/hibernaut/hooks/pre-suspend.d may prepare for a suspend. 0: they are not asked.",
    default: "0",
    option: "suspend-timeout",
    key: null,
  },
  keep_layer: {
    kind: "boolean",
    description: "Whether a stop or a restart keeps what the machine wrote to its file system. An update never does.",
    default: "false",
  },
  worker_idle_timeout: {
    kind: "seconds",
    ...IDLE_TIMEOUT_S,
    description:
      "Suspends a machine without services when nothing has passed for this long through its connections to apps of its network. What comes back over one of them wakes it, so it needs one, and a bridge. Without effect on a machine with services.",
    default: "it stays awake",
  },
  auto_destroy: {
    kind: "boolean",
    description:
      "Whether the machine is destroyed once its app has ended and is not started again, or a client has stopped it. Its volumes are kept. One that sleeps, is stopped for being idle or is lost stays.",
    default: "false",
  },
  on_host_loss: {
    kind: "choice",
    choices: ["wait", "recreate"],
    description:
      "In a cluster, what happens when the machine's host is lost. `wait`: nothing, until you evacuate the host. `recreate`: another host starts the machine from scratch. A machine with a volume always waits.",
    default: "wait",
  },
} as const satisfies Fields;

/** Fields of a service. */
export const SERVICE_FIELDS = {
  autostop: {
    kind: "choice",
    choices: ["suspend", "stop", "off"],
    description: "What happens to the machine when it is idle.",
    label: "When idle",
    default: "off",
    key: "auto_stop_machines",
  },
  autostop_fallback: {
    kind: "choice",
    choices: ["stop", "off"],
    description:
      "What happens with `autostop: suspend` to an idle machine that cannot be suspended. `stop`: it is stopped, and what it wrote to its file system is kept. `off`: it keeps running.",
    default: "stop",
    key: "auto_stop_fallback",
  },
  autostart: {
    kind: "boolean",
    description: "Whether a request starts the machine.",
    label: "Wake by request",
    default: "true",
    key: "auto_start_machines",
  },
  min_machines_running: {
    kind: "count",
    minimum: 0,
    maximum: 1000,
    description: "How many of the app's running machines stay awake when they are idle. It starts none.",
    label: "Machines that keep running",
    default: "0",
    option: "min-running",
  },
  idle_timeout: {
    kind: "seconds",
    ...IDLE_TIMEOUT_S,
    description: "How long a machine has had no request when it counts as idle.",
    label: "Idle timeout, in seconds",
    default: String(DEFAULT_IDLE_TIMEOUT_S),
  },
  hold_timeout: {
    kind: "seconds",
    ...HOLD_TIMEOUT_S,
    description:
      "How long a request waits for a machine before it is refused. More than the platform's setting has no effect.",
    default: "the platform's setting HIBERNAUT_PROXY_HOLD_TIMEOUT",
  },
  idle: {
    kind: "choice",
    choices: ["open", "quiet"],
    description:
      "What a connection means that stays open, over TCP or upgraded. `open`: it keeps the machine awake. `quiet`: only while something passes through it; on a bridge, the connection survives the sleep, and what the client sends next wakes the machine.",
    default: "open",
  },
  keep_warm: {
    kind: "seconds",
    ...KEEP_WARM_S,
    description:
      "How long the paused virtual machine stays in memory after a suspend, next to the snapshot. The next start is faster then. 0: not at all.",
    label: "Keep warm, in seconds",
    default: "the platform's setting HIBERNAUT_KEEP_WARM",
  },
  placement: {
    kind: "choice",
    choices: ["shared", "pinned"],
    description:
      "Whether the app's machines share its load. `pinned`: each machine has work of its own and sleeps by itself, and requests that name no machine go to the others.",
    default: "shared",
  },
  machine_hostnames: {
    kind: "boolean",
    description:
      "Whether requests may choose the machine. They do by its own hostname, `<machine>.<app>.<suffix>` or `<port>--<machine>.<app>.<suffix>`, or by a header.",
    default: "false",
  },
  force_https: {
    kind: "boolean",
    description: "Whether a request over plain HTTP is redirected to HTTPS, if the proxy serves it.",
    default: "false",
  },
  wake_page: {
    kind: "boolean",
    description:
      "Whether a browser that would wait for a cold start is shown a page in the meantime, which reloads itself.",
    default: "false",
  },
  "http_options.h2_backend": {
    kind: "boolean",
    description:
      "Whether the app gets its requests over HTTP/2 without TLS. That is h2c with prior knowledge, which gRPC servers speak.",
    default: "false",
    key: null,
  },
  "concurrency.soft_limit": {
    kind: "count",
    minimum: 1,
    maximum: 1_000_000,
    description: "Load at which another machine of the app is started.",
    label: "Soft limit",
    default: String(DEFAULT_SOFT_LIMIT),
    key: null,
  },
  "concurrency.hard_limit": {
    kind: "count",
    minimum: 1,
    maximum: 1_000_000,
    description: "Load at which the machine takes no more requests.",
    label: "Hard limit",
    default: "none",
    key: null,
  },
} as const satisfies Fields;

/** The fields that the app file has keys for, with those keys. */
export function keysOf(fields: Fields): [path: string, key: string, field: Field][] {
  return Object.entries(fields).flatMap(([path, field]) => {
    const { key = lastName(path) } = field;
    return key === null ? [] : [[path, key, field]];
  });
}

/** The last name of a path: `soft_limit` of `concurrency.soft_limit`. */
export function lastName(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

/** The value at a path; undefined where there is none. */
export function valueAt(of: object, path: string): unknown {
  return path.split(".").reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], of);
}

/** A copy with another value at a path. An undefined one removes the field, and the part that held nothing else. */
export function withValueAt<T extends object>(of: T, path: string, value: unknown): T {
  const [name = "", ...rest] = path.split(".");
  const { [name]: before, ...others } = of as Record<string, unknown>;
  const after = rest.length === 0 ? value : withValueAt(before ?? {}, rest.join("."), value);
  const isEmpty = after === undefined || (rest.length > 0 && Object.keys(after as object).length === 0);
  return (isEmpty ? others : { ...of, [name]: after }) as T;
}
