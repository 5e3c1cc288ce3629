/** The arguments of the launcher (packages/jail), computed from what the program may see and use. Pure. */

/** The descriptors that a program in a jail finds open. Lower ones are its standard streams and the device state. */
export const HANDLES = {
  /** The launcher's own: it says here which process the program is, or why there is none. */
  status: 4,
  qmp: 5,
  agent: 6,
  tap: 7,
} as const;

/** What is visible in a jail, at the paths that it has outside. */
export interface Places {
  read: readonly string[];
  write: readonly string[];
  devices: readonly string[];
  /** Symbolic links by path. */
  links: Readonly<Record<string, string>>;
}

/** One jail. */
export interface JailPlan {
  /** Path of the program that runs in it. */
  program: string;
  /** An existing directory to build the root on; nothing is written there. */
  root: string;
  /** The user and group of the program. Without it, those of the platform, in a user namespace. */
  uid?: number;
  /** Further groups, for devices. */
  groups: readonly number[];
  /** Whether the program gets a network of its own, with nothing in it. */
  ownNetwork: boolean;
  /** Directory of the control group. */
  cgroup?: string;
  places: Places;
  listen?: { qmp: string; agent: string };
  tap?: string;
  /** Path of a library that the program loads first. */
  preload?: string;
  /** Whether the program ends when the process that started the launcher does. */
  endWithParent?: boolean;
  /** How far the program comes behind the platform when the CPUs are busy: see nice(2). */
  nice: number;
  /** Resource limits by the launcher's names, soft and hard. */
  limits: Readonly<Record<string, number>>;
}

/** Returns the launcher's arguments, up to those of the program. */
export function launcherArguments(plan: JailPlan): string[] {
  const { read, write, devices, links } = plan.places;
  return [
    ...["--status", String(HANDLES.status), "--root", plan.root],
    ...(plan.uid === undefined ? [] : ["--uid", String(plan.uid)]),
    ...plan.groups.flatMap((gid) => ["--group", String(gid)]),
    ...(plan.ownNetwork ? ["--own-network"] : []),
    ...(plan.endWithParent === true ? ["--end-with-parent"] : []),
    ...(plan.cgroup === undefined ? [] : ["--cgroup", plan.cgroup]),
    ...["--nice", String(plan.nice)],
    ...Object.entries(plan.limits).flatMap(([name, value]) => ["--limit", name, String(value)]),
    ...read.flatMap((path) => ["--read", path]),
    ...Object.entries(links).flatMap(([path, target]) => ["--link", path, target]),
    ...write.flatMap((path) => ["--write", path]),
    ...devices.flatMap((path) => ["--device", path]),
    ...(plan.listen === undefined
      ? []
      : ["--listen", String(HANDLES.qmp), plan.listen.qmp, "--listen", String(HANDLES.agent), plan.listen.agent]),
    ...(plan.preload === undefined ? [] : ["--preload", plan.preload]),
    ...(plan.tap === undefined ? [] : ["--tap", String(HANDLES.tap), plan.tap]),
    "--",
    plan.program,
  ];
}
