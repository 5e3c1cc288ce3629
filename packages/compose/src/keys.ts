/** Keys of a service that are read nowhere, each with the reason. Pure. */
import { nearest } from "@hibernaut/lib/nearest";
import type { Findings } from "./findings.ts";
import { isMapping, type Mapping, own, textsOf } from "./values.ts";

/** Without effect, and nothing is lost by that. */
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  init: "A machine has an init of its own.",
  labels: "Nothing here reads labels.",
  annotations: "Nothing here reads annotations.",
  logging: "`hibernaut compose logs` has the logs.",
  pull_policy: "An image is pulled once, by its digest, and again when the service changes.",
  platform: "A machine has the host's architecture.",
  stdin_open: "`hibernaut machine console` has a terminal.",
  tty: "`hibernaut machine console` has a terminal.",
  attach: "`hibernaut compose logs --follow` shows the logs.",
  scale: "The project has one machine of each service. `hibernaut scale count` adds more.",
  develop: "Nothing here watches files.",
  oom_score_adj: "A machine has its memory for itself.",
  memswap_limit: "A machine has its memory for itself.",
  mem_reservation: "A machine has its memory for itself.",
  mem_swappiness: "A machine has its memory for itself.",
  cpu_shares: "`cpus` says how many CPUs the machine has.",
  cpu_quota: "`cpus` says how many CPUs the machine has.",
  cpu_period: "`cpus` says how many CPUs the machine has.",
  cpuset: "`cpus` says how many CPUs the machine has.",
  pids_limit: "A machine has its processes for itself.",
  ulimits: "A machine has limits of its own, and takes nothing from others.",
  shm_size: "A machine has /dev/shm of its own, up to half of its memory.",
  runtime: "A machine is its own runtime.",
  isolation: "A machine is isolated in any case.",
  cap_add: "A machine has a kernel of its own: its root may do what root may do.",
  cap_drop: "The app's user has the capabilities that the kernel gives it.",
  privileged: "A machine has a kernel of its own: its root may do what root may do.",
  security_opt: "A machine has a kernel of its own.",
  userns_mode: "A machine has users of its own.",
  group_add: "Give the user its groups in the image.",
  ipc: "A machine shares nothing with the host.",
  pid: "A machine shares nothing with the host.",
  uts: "A machine shares nothing with the host.",
  cgroup: "A machine has cgroups of its own.",
  cgroup_parent: "A machine has cgroups of its own.",
  domainname: "A machine is found by its service's name.",
  mac_address: "A machine has an address of its own.",
  read_only: "The file system can be written, and is made again with the next version.",
  tmpfs: "What is written there is in the machine's own layer, on disk.",
  storage_opt: "A machine's layer grows as it is written.",
  dns: "Machines ask the platform's name server.",
  dns_opt: "Machines ask the platform's name server.",
  dns_search: "Machines ask the platform's name server.",
};

/** The service would not work as it is meant to. */
const NOT_POSSIBLE: Readonly<Record<string, string>> = {
  devices: "A machine has no devices of the host.",
  gpus: "A machine has no devices of the host.",
  device_cgroup_rules: "A machine has no devices of the host.",
  volumes_from: "A volume belongs to one machine.",
  credential_spec: "Machines run Linux.",
  sysctls: "Set them in the app's start script: its root may.",
  external_links: "Only services of the project find each other by name.",
  network_mode: "A machine shares no network with the host or another container. Its ports are at its own address.",
  provider: "Only containers become machines.",
  models: "Only containers become machines.",
  use_api_socket: "There is no Docker here.",
  post_start: "Run it in the app's own start script.",
  pre_stop: "Run it when the app gets its stop signal.",
};

/** Read by other files of this package. */
const READ: ReadonlySet<string> = new Set([
  ...["image", "build", "command", "entrypoint", "environment", "env_file", "secrets", "configs", "ports", "expose"],
  ...[
    "depends_on",
    "healthcheck",
    "volumes",
    "restart",
    "deploy",
    "stop_grace_period",
    "stop_signal",
    "user",
    "working_dir",
  ],
  ...[
    "extra_hosts",
    "networks",
    "links",
    "container_name",
    "hostname",
    "profiles",
    "mem_limit",
    "cpus",
    "x-hibernaut",
    "extends",
  ],
]);

const KNOWN = [...READ, ...Object.keys(WITHOUT_EFFECT), ...Object.keys(NOT_POSSIBLE)];

/** A service has a few typing errors. One that was made to be slow has thousands of unknown keys, and each guess compares a hundred words. */
const MOST_GUESSES = 20;

function meant(key: string): string {
  const known = nearest(key, KNOWN);
  return known === undefined ? "" : ` Did you mean ${known}?`;
}

/** Tells of every key that has no effect, or is left out. */
export function tellKeys(definition: Mapping, path: string, findings: Findings): void {
  let unknown = 0;
  for (const key of Object.keys(definition)) {
    if (READ.has(key) || key.startsWith("x-")) continue;
    const why = own(WITHOUT_EFFECT, key);
    const refused = own(NOT_POSSIBLE, key);
    const where = `${path}.${key}`;
    if (refused !== undefined) findings.warn(where, `Left out. ${refused}`);
    else if (why !== undefined) findings.note(where, `No effect. ${why}`);
    else {
      unknown += 1;
      findings.warn(where, `Left out: the key is unknown.${unknown > MOST_GUESSES ? "" : meant(key)}`);
    }
  }
  if (definition.extra_hosts !== undefined)
    findings.warn(
      `${path}.extra_hosts`,
      "Left out. This host is host.hibernaut.internal in every machine; other names come from the host's name server.",
    );
  const networks = isMapping(definition.networks) ? Object.keys(definition.networks) : textsOf(definition.networks);
  if (networks.some((name) => name !== "default"))
    findings.note(`${path}.networks`, "All services of the project share one network here.");
}
