/** What runs in the outer machine: its first program, as a shell script, and the settings of the platform. */
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../../..");

/** The outer machine's address in QEMU's user-mode network. Not 0.0.0.0, because inner machines take ports of loopback. */
const ADDRESS = "10.0.2.15";
/** Where the platform listens inside. */
export const API_PORT = 4280;
export const PROXY_PORT = 8080;
/** What the script says when the platform has ended, which it should not. */
export const ENDED = "the platform has ended";

/** The parameter of the kernel that names the program of the tests that runs instead of the platform, and where those are. */
export const PROGRAM = "hibernaut.program=";
export const INSIDE = "packages/platform/test/nested/programs";
/** Prints what programs of the tests found. */
export const REPORTER = `${INSIDE}/reporter.mjs`;
/** What the script says when that has ended, before its exit code. */
export const EXITED = "the program has ended with ";

/** Node only interprets, because the emulator would have to translate what it compiles. */
const INTERPRET = "--no-sparkplug --no-maglev --no-opt";
/** The same for each Node that a program of the tests starts, as the source of a module that Node loads first. */
export const INTERPRETED = {
  path: "/interpret.cjs",
  source: `require("node:v8").setFlagsFromString("${INTERPRET}");\n`,
};

/** What the platforms have that programs of the tests start is for these to say. */
const OF_THE_PLATFORM = [
  "HIBERNAUT_DATA_DIR",
  "HIBERNAUT_API_LISTEN",
  "HIBERNAUT_PROXY_LISTEN",
  "HIBERNAUT_ACCELERATOR",
  "HIBERNAUT_LAYER_SIZE",
  "HIBERNAUT_LOG_FORMAT",
];
const VERDICT = "kvm-verdict.json";

/**
 * How many times slower than usual machines inside are. KVM on the emulated processor's SVM is several times faster than
 * emulation in emulation, and a cold start still takes a minute where it takes a second on real KVM.
 */
const SLOW_FACTOR = 20;

const SETTINGS = {
  HOME: "/data",
  XDG_CONFIG_HOME: "/data/cfg",
  HIBERNAUT_DATA_DIR: "/data/h",
  HIBERNAUT_API_LISTEN: `${ADDRESS}:${API_PORT}`,
  HIBERNAUT_PROXY_LISTEN: `${ADDRESS}:${PROXY_PORT}`,
  HIBERNAUT_LOG_FORMAT: "json",
  HIBERNAUT_NETWORK: "user",
  HIBERNAUT_ACCELERATOR: "kvm",
  HIBERNAUT_GUEST_BUNDLE: join(ROOT, "packages/guest/.build/bundle"),
  HIBERNAUT_LAYER_SIZE: "64mb",
  HIBERNAUT_SLOW_FACTOR: String(SLOW_FACTOR),
};

/** What the script depends on. */
export interface InitOptions {
  /** The version of QEMU inside, and of the guest bundle. */
  qemu: string;
  bundle: string;
  /** A library that every program loads; "" for none. */
  preloaded: string;
  /** Whether the platform finds that KVM was proved. Otherwise it proves it, which takes a minute after every boot. */
  proved: boolean;
}

/** Returns the script. The disk is mounted at `/data`, and what the host has to know goes to the second serial port. */
export function initScript({ qemu, bundle, preloaded, proved }: InitOptions): string {
  const verdict = { host: "", failure: "", cpu: "host", failed: [] };
  const rest = JSON.stringify(verdict).slice(1).replaceAll('"', '\\"');
  return [
    ...Object.entries({ PATH: "/bin", ...SETTINGS }).map(([name, value]) => `export ${name}='${value}'`),
    "mount -t sysfs sys /sys",
    "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
    "mount -t tmpfs tmp /tmp",
    "mount -t tmpfs run /run",
    "mount -t ext4 /dev/vdb /data || echo 'the disk could not be mounted'",
    "ip link set lo up",
    "ip link set eth0 up",
    `ip address add ${ADDRESS}/24 dev eth0`,
    "ip route add default via 10.0.2.2",
    // Reads QEMU and its eighty libraries from the disk, before the platform's time limits count.
    "qemu-system-x86_64 --version",
    "mkdir -p /data/h && read -r boot < /proc/sys/kernel/random/boot_id",
    `echo "{\\"key\\":\\"$boot ${qemu} ${bundle} auto\\",${rest}" > /tmp/${VERDICT}`,
    ...(proved ? [`cp /tmp/${VERDICT} /data/h/${VERDICT}`] : []),
    ...(preloaded === "" ? [] : [`export LD_PRELOAD=${preloaded}`]),
    "read -r parameters < /proc/cmdline",
    `case "$parameters" in *${PROGRAM}*)`,
    `program=\${parameters##*${PROGRAM}}`,
    "mkdir -p /data/t",
    `unset ${OF_THE_PLATFORM.join(" ")}`,
    `export HIBERNAUT_TEST_ACCELERATOR=kvm HIBERNAUT_TEST_KVM_VERDICT=/tmp/${VERDICT} TMPDIR=/data/t`,
    `export NODE_OPTIONS=--require=${INTERPRETED.path}`,
    `node --test-reporter=${ROOT}/${REPORTER} ${ROOT}/${INSIDE}/\${program%% *}.js > /dev/ttyS1 2>&1`,
    `echo "${EXITED}$?" > /dev/ttyS1`,
    "while true; do sleep 1000; done ;;",
    "esac",
    // The first line says that the platform is up. The host needs the token that it then finds here.
    `node ${INTERPRET} ${ROOT}/packages/cli/bin/hibernaut.js serve --json |` +
      ' { read -r line; cat /data/h/config.json; echo "$line"; cat; } > /dev/ttyS1',
    `echo '${ENDED}' > /dev/ttyS1`,
    "while true; do sleep 1000; done",
  ].join("\n");
}
