/** Settings of machines: the virtual hardware, their network, and how long each step may take. */
import { totalmem } from "node:os";
import { choice, duration, integer, list, NETWORK, path, size, text } from "./forms.ts";
import { BUNDLED_GUEST } from "./places.ts";

const MB = 1024 * 1024;
/** The share of the host's memory that kept VMMs may take: the rest is for machines that run. */
const WARM_SHARE = 8;
/** Below 5 % of memory, the kernel begins to take from programs what they use; a larger reserve than 1 GB helps nobody. */
const RESERVE_SHARE = 20;
const LARGEST_RESERVE_MB = 1024;

export const MACHINE_SETTINGS = {
  accelerator: choice("HIBERNAUT_ACCELERATOR", ["auto", "kvm", "tcg"], {
    default: "auto",
    description:
      "`auto` uses KVM if the guest bundle boots under it, and software emulation otherwise. `kvm` insists; `tcg` uses software emulation without trying KVM.",
  }),
  kvmCpu: text("HIBERNAUT_KVM_CPU", {
    default: "auto",
    pattern: "^[A-Za-z0-9][A-Za-z0-9_.+=,-]*$",
    accepts: "auto, or a CPU as QEMU's -cpu takes it, such as host,-vmx",
    description:
      "The CPU of machines under KVM. `auto` is the host's, without what its KVM refuses: see [where KVM is partial](operate.md#where-kvm-is-partial). A change costs sleeping machines their memory, so it needs [`serve --drop-snapshots`](operate.md#when-a-start-would-cost-memory).",
  }),
  kvmProofTimeoutMs: duration("HIBERNAUT_KVM_PROOF_TIMEOUT", {
    scaled: true,
    default: 8_000,
    min: 1000,
    max: 600_000,
    description:
      "How long a guest may take to boot under KVM to prove that it works. It takes a second. KVM on a host that needs longer counts as broken.",
  }),
  slowFactor: integer("HIBERNAUT_SLOW_FACTOR", {
    default: 1,
    min: 1,
    max: 100,
    description:
      "How many times slower than usual this host is, for example because it is itself a virtual machine with nested KVM. It multiplies the time that QEMU and guests get, and the defaults of the time limits here: boot, ready, resume, suspend, flush, wake, hooks, QEMU's answers, the proof of KVM, and how long the proxy holds a request. A limit that you set yourself counts as it is.",
  }),
  network: choice("HIBERNAUT_NETWORK", ["auto", "bridge", "user"], {
    default: "auto",
    description:
      "How machines are connected, see [network](network.md#network-modes). `auto` uses a bridge if this host can have one, which needs root, and QEMU's own network otherwise. `bridge` insists; `user` uses QEMU's own without trying. Once there are machines, `auto` keeps their mode. A change costs sleeping machines their memory, so it needs [`serve --drop-snapshots`](operate.md#when-a-start-would-cost-memory).",
  }),
  networkSubnet: text("HIBERNAUT_NETWORK_SUBNET", {
    default: "auto",
    pattern: "^(auto|\\d{1,3}(\\.\\d{1,3}){3}/\\d{1,2})$",
    accepts: "auto, or a private IPv4 subnet from /22 to /28, such as 10.99.0.0/22",
    description:
      "The private IPv4 subnet of the bridge, from /22 (1021 machines) to /28. `auto` finds one that the host does not use and keeps it. A change gives every machine a new address and costs sleeping machines their memory, so it needs [`serve --drop-snapshots`](operate.md#when-a-start-would-cost-memory).",
  }),
  blockedNetworks: list("HIBERNAUT_BLOCKED_NETWORKS", {
    default: [],
    item: NETWORK,
    of: "addresses or networks such as 10.1.2.0/24",
    description:
      "Addresses and networks that neither machines on a [bridge](network.md#what-a-machine-can-reach) nor [webhooks](webhooks.md#where-webhooks-may-lead) reach, in addition to 169.254.0.0/16, 168.63.129.16 and 100.100.100.200, where clouds keep credentials. The machines' own subnet stays reachable.",
  }),
  networkConnections: integer("HIBERNAUT_NETWORK_CONNECTIONS", {
    default: 4096,
    min: 0,
    max: 32_768,
    description:
      "How many connections a machine on the bridge may have opened that the host still knows, see [what a machine may open](network.md#what-a-machine-may-open). The default is for 34 new TCP connections per second that are closed at once, without end, as each is known for 2 more minutes; the host's table has room for 262,144 by default. More than this costs time for each new one. `0`: no limit.",
  }),
  networkConnectionRate: integer("HIBERNAUT_NETWORK_CONNECTION_RATE", {
    default: 500,
    min: 0,
    max: 100_000,
    description:
      "How many connections a machine on the bridge may open per second, and twice as many at once after a pause. Each costs the host time. `0`: no limit.",
  }),
  qemu: text("HIBERNAUT_QEMU", {
    default: "qemu-system-x86_64",
    pattern: "",
    accepts: "",
    description: "The QEMU program, 7.2 or later.",
  }),
  jail: choice("HIBERNAUT_JAIL", ["auto", "require", "off"], {
    default: "auto",
    description:
      "The [jail](security.md#the-jail) that each machine's QEMU runs in. `auto`: as much of one as this host and this user allow; `hibernaut doctor` says what is missing. `require`: the platform does not start without a whole one. `off`: none. A machine that runs keeps what it has until it stops or sleeps.",
  }),
  jailFirstUid: integer("HIBERNAUT_JAIL_FIRST_UID", {
    default: 1_900_000_000,
    min: 65_536,
    max: 4_278_190_078,
    description:
      "The first of 16,777,216 users, one of which each machine's QEMU runs as when the platform runs as root; the groups have the same numbers. They must belong to nobody else: the default is above what systemd and containers use.",
  }),
  snapshotQemu: choice("HIBERNAUT_SNAPSHOT_QEMU", ["series", "exact"], {
    default: "series",
    description:
      "Which QEMU may resume a snapshot. `series`: any build of the same major and minor version, such as 7.2, so that security updates don't cost sleeping machines their memory. `exact`: only the build that took it. See [upgrade QEMU](upgrade.md#upgrade-qemu).",
  }),
  guestBundle: path("HIBERNAUT_GUEST_BUNDLE", {
    fallback: () => BUNDLED_GUEST,
    defaultText: "`packages/guest/.build/bundle` in the repository",
    description: "The directory of the [guest bundle](../packages/guest/README.md) that the setup built.",
  }),
  suspendMaxMemoryMb: size("HIBERNAUT_SUSPEND_MAX_MEMORY", {
    formerly: "HIBERNAUT_SUSPEND_MAX_MEMORY_MB",
    default: 2048,
    min: 128,
    max: 1_048_576,
    description:
      "Machines with more memory than this cannot be suspended; when they are idle they are [stopped](machines.md#if-an-idle-machine-cannot-be-suspended). Their snapshots would cost too much disk and time.",
  }),
  keepWarmS: duration("HIBERNAUT_KEEP_WARM", {
    unit: "s",
    default: 300,
    min: 0,
    max: 86_400,
    description:
      "How long the paused virtual machine of a suspended machine stays in memory, next to its snapshot: a wake then takes milliseconds, see [warm sleep](proxy.md#warm-sleep). Services may say otherwise with `keep_warm`. 0: not at all.",
  }),
  keepWarmMemoryMb: size("HIBERNAUT_KEEP_WARM_MEMORY", {
    fallback: () => Math.floor(totalmem() / WARM_SHARE / MB),
    defaultText: "an eighth of the host's memory",
    min: 0,
    max: 1_048_576,
    description:
      "How much memory the paused virtual machines of suspended machines may take together. The memory of their guests does not count: it is on disk, and the kernel drops it when it needs room. 0: none is kept.",
  }),
  memoryReserveMb: size("HIBERNAUT_MEMORY_RESERVE", {
    fallback: () => Math.min(LARGEST_RESERVE_MB, Math.floor(totalmem() / RESERVE_SHARE / MB)),
    defaultText: "5 % of the host's memory, at most 1 GB",
    min: 0,
    max: 1_048_576,
    description:
      "How much of the host's memory no machine gets: for its other programs, and for files that they read. A start that would need it [is refused](operate.md#when-the-hosts-memory-is-full).",
  }),
  memoryOvercommit: integer("HIBERNAUT_MEMORY_OVERCOMMIT", {
    default: 100,
    min: 0,
    max: 1000,
    description:
      "How much memory machines that are awake may have together, in percent of what the host has for them. The default promises no memory twice. Apps rarely touch all of theirs, so `200` is often safe; the price of too much is that all machines wait for the disk. `0` refuses no start, and checks nothing.",
  }),
  prewarmTimeoutMs: duration("HIBERNAUT_PREWARM_TIMEOUT", {
    scaled: true,
    default: 300_000,
    min: 1000,
    max: 3_600_000,
    description:
      "How long the new version of a sleeping machine may take to become healthy in a [prewarm](deploy.md#prewarm-a-new-version), from the update on. After that, the prewarm has failed, and the machine is stopped.",
  }),
  prewarmSettleMs: duration("HIBERNAUT_PREWARM_SETTLE", {
    default: 1_000,
    min: 0,
    max: 600_000,
    description:
      "How long a machine in a [prewarm](deploy.md#prewarm-a-new-version) stays healthy before it sleeps. Apps have more to do right after they answered for the first time, and the first visitor does not wait for what is done by then.",
  }),
  layerSizeMb: size("HIBERNAUT_LAYER_SIZE", {
    formerly: "HIBERNAUT_LAYER_SIZE_MB",
    default: 8192,
    min: 64,
    max: 1_048_576,
    description:
      "How large a machine's writable layer may become. It takes disk space only for what is written. Existing layers keep their size.",
  }),
  diskQuotaMb: size("HIBERNAUT_DISK_QUOTA", {
    default: 0,
    min: 0,
    max: 1_073_741_824,
    description:
      "How much disk each app may take: the memory, writable layers, logs and images of its machines, its volumes and their snapshots, as far as they [take space](operate.md#limit-the-disk-of-an-app). `0` sets no limit, as on a server of your own.",
  }),
  bootTimeoutMs: duration("HIBERNAUT_BOOT_TIMEOUT", {
    scaled: true,
    formerly: "HIBERNAUT_BOOT_TIMEOUT_MS",
    default: 60_000,
    min: 1000,
    max: 600_000,
    description:
      "From power on to the agent's first message. It takes 3 s under emulation on a quiet host, and ten times that on a loaded one. A start that takes longer fails.",
  }),
  readyTimeoutMs: duration("HIBERNAUT_READY_TIMEOUT", {
    scaled: true,
    formerly: "HIBERNAUT_READY_TIMEOUT_MS",
    default: 30_000,
    min: 0,
    max: 600_000,
    description: "From then until the app listens. After that, the machine counts as running anyway.",
  }),
  resumeTimeoutMs: duration("HIBERNAUT_RESUME_TIMEOUT", {
    scaled: true,
    formerly: "HIBERNAUT_RESUME_TIMEOUT_MS",
    default: 15_000,
    min: 500,
    max: 600_000,
    description: "For a resume, which takes a fraction of a second. One that takes longer becomes a cold start.",
  }),
  suspendTimeoutMs: duration("HIBERNAUT_SUSPEND_TIMEOUT", {
    scaled: true,
    formerly: "HIBERNAUT_SUSPEND_TIMEOUT_MS",
    default: 60_000,
    min: 1000,
    max: 600_000,
    description:
      "For a suspend; flushing a large memory to a slow disk takes longest. A suspend that takes longer is cancelled, and the machine keeps running.",
  }),
  flushTimeoutMs: duration("HIBERNAUT_FLUSH_TIMEOUT", {
    scaled: true,
    default: 10_000,
    min: 500,
    max: 600_000,
    description:
      "Of a suspend: for the guest to pause its app and flush its disks. A guest that writes a lot takes a while. After that, the suspend is given up, and the machine keeps running.",
  }),
  wakeTimeoutMs: duration("HIBERNAUT_WAKE_TIMEOUT", {
    scaled: true,
    default: 10_000,
    min: 500,
    max: 600_000,
    description: "For the guest to answer after a suspend was given up. One that is slower continues by itself.",
  }),
  qemuTimeoutMs: duration("HIBERNAUT_QEMU_TIMEOUT", {
    scaled: true,
    default: 10_000,
    min: 500,
    max: 600_000,
    description: "For QEMU's answer to a command, which takes milliseconds. A QEMU that is silent for longer hangs.",
  }),
  scrubIntervalH: duration("HIBERNAUT_SCRUB_INTERVAL", {
    unit: "h",
    default: 24,
    min: 0,
    max: 8760,
    description:
      "How often the snapshot of a sleeping machine is read from the disk and [checked](machines.md#whole-snapshots). A damaged one is found while it can be looked into, rather than by a visitor. `0` never does it.",
  }),
  scrubRateMb: size("HIBERNAUT_SCRUB_RATE", {
    default: 32,
    min: 1,
    max: 10_240,
    description:
      "How much of a snapshot is read per second then: little, so that wakes don't wait for the disk. At the default, a day is enough for 2.7 TB.",
  }),
  drainSuspends: integer("HIBERNAUT_DRAIN_SUSPENDS", {
    default: 4,
    min: 1,
    max: 64,
    description:
      "How many machines [`hibernaut drain --suspend`](operate.md#drain-the-platform) suspends at a time, and how many are resumed at a time afterwards. A few keep the disk busy; more would only slow each other down.",
  }),
  resumeOnBoot: choice("HIBERNAUT_RESUME_ON_BOOT", ["on", "off"], {
    default: "on",
    description:
      "`on` resumes the machines that a [drain](operate.md#drain-the-platform) suspended when the platform starts again, because they were running before. With `off` they sleep until a request or a command wakes them. [Workers](compose.md#workers) wake in both cases, because their connections have ended.",
  }),
  scheduledSnapshots: choice("HIBERNAUT_SCHEDULED_SNAPSHOTS", ["auto", "on", "off"], {
    default: "auto",
    description:
      "Whether the platform takes [snapshots](volumes.md#scheduled-snapshots) of a new volume by itself, unless its creation says so. `auto`: if the file system of the data directory can clone files (btrfs, XFS), where a snapshot takes the space of what changes; elsewhere each would be a full copy.",
  }),
  snapshotIntervalH: duration("HIBERNAUT_SNAPSHOT_INTERVAL", {
    unit: "h",
    default: 24,
    min: 1,
    max: 8760,
    description:
      "How often such a snapshot is taken of each volume. At the default and five days of retention, there are up to five.",
  }),
  hookTimeoutMs: duration("HIBERNAUT_HOOK_TIMEOUT", {
    scaled: true,
    formerly: "HIBERNAUT_HOOK_TIMEOUT_MS",
    default: 5_000,
    min: 100,
    max: 60_000,
    description: "For all [hooks after a resume](inside.md#run-hooks) together: requests wait for them.",
  }),
  keepAwakeMaxS: duration("HIBERNAUT_KEEPALIVE_MAX_TTL", {
    unit: "s",
    default: 3600,
    min: 1,
    max: 604_800,
    description:
      "The longest that an app may ask to be [kept awake](inside.md#keep-a-machine-awake) at once. It may ask again.",
  }),
  logMaxMb: size("HIBERNAUT_LOG_MAX_SIZE", {
    formerly: "HIBERNAUT_LOG_MAX_MB",
    default: 16,
    min: 1,
    max: 10_240,
    description:
      "How much disk the [log](logs.md) of one machine may take, in two files of half that size: enough for a day of a talkative app, times all machines.",
  }),
  logRateMb: size("HIBERNAUT_LOG_RATE", {
    default: 1,
    min: 1,
    max: 1024,
    description:
      "How much the [log](logs.md) of one machine takes per second of what its app prints; five times as much at once. What is over it is [lost, and counted](logs.md#log-guarantees). The default fills the log's files in seconds, so more would be deleted before anyone reads it.",
  }),
  logLines: integer("HIBERNAUT_LOG_LINES", {
    default: 5000,
    min: 10,
    max: 1_000_000,
    description:
      "How many lines it takes per second, however short; five times as many at once. A line costs the platform 2 to 5 microseconds, which is time that requests to all apps share.",
  }),
};
