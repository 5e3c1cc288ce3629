/** Plans a deploy. Pure, so that running a deploy again continues where it was interrupted. */
import type { Machine, MachineConfig, MachineState, Release } from "@hibernaut/client";
import { isWokenByRequests, isWorker } from "@hibernaut/domain/worker";
import { GROUP_METADATA, RELEASE_METADATA } from "../appfile/machine-configs.ts";
import { isUnreachable } from "../crashed.ts";
import { leftovers, withoutPredecessor } from "./leftovers.ts";

/** The machines that a process group should have. */
export interface WantedGroup {
  config: MachineConfig;
  /** How many, if the file says so; otherwise as many as exist, but at least one. */
  count?: number;
}

export type Step =
  | { kind: "create"; group: string; config: MachineConfig }
  /**
   * `running`: the machine is replaced and must pass its checks, and is started if it sleeps. Otherwise it stays asleep and
   * starts with the new version.
   */
  | { kind: "update"; group: string; machine: Machine; config: MachineConfig; running: boolean }
  /** `tries`: where the deploy waits, the machine, which sleeps, is started and must pass its checks. */
  | { kind: "keep"; group: string; machine: Machine; tries: boolean };

interface DeployPlan {
  /** Running machines first: they show whether the new version works. */
  steps: Step[];
  /** Machines that belong to no group of the file. They are left alone. */
  others: Machine[];
  /** Machines that a deploy which was cut off has left. */
  leftovers: Machine[];
  /** Machines of hosts that cannot be asked. They stay as they are, and count: others in their place would be too many. */
  away: Machine[];
}

const UP: ReadonlySet<MachineState> = new Set(["running", "starting", "restarting", "updating", "failed"]);

/** What the metadata keys begin with that deploys write. */
const DEPLOY_KEYS = "hibernaut_";

/**
 * Compares the wanted groups with the existing machines. All get the image of the release, by its digest.
 *
 * @param untried whether no release of the app ever worked. Then a machine that is suspended says nothing, and must
 *   pass, too. One that is stopped stays so: its owner may have stopped it
 */
export function planDeploy(
  wanted: ReadonlyMap<string, WantedGroup>,
  all: readonly Machine[],
  release: Pick<Release, "image" | "pinned_image">,
  { untried = false }: { untried?: boolean } = {},
): DeployPlan {
  const steps: Step[] = [];
  const away = all.filter(isUnreachable);
  const left = leftovers(all.filter((machine) => !isUnreachable(machine)));
  const machines = all.filter((machine) => !left.includes(machine) && !away.includes(machine));
  for (const [group, { config: named, count = 1 }] of wanted) {
    const config = { ...named, image: release.pinned_image };
    const own = machines.filter((machine) => groupOf(machine) === group);
    // A new one is a way out for its siblings, unless it has the rules that they have.
    const asSiblings = withWall(
      config,
      own.find((machine) => machine.config.network !== undefined),
    );
    for (const machine of own) {
      const next = withLabels(withWall(config, machine), machine);
      // A machine on a schedule has its times.
      const tries = untried && machine.state === "suspended" && next.schedule === undefined;
      // Without the connections of its former memory nothing would wake a worker, so the platform starts it. Nor would a
      // request wake what no longer listens.
      const loses = isWokenByRequests(machine.config) && !isWokenByRequests(next) && next.schedule === undefined;
      const starts = machine.state === "suspended" && (isWorker(next) || loses);
      const step: Step = isCurrent(machine, next, release.image.digest)
        ? { kind: "keep", group, machine, tries }
        : { kind: "update", group, machine, config: next, running: isUp(machine) || tries || starts };
      steps.push(step);
    }
    const present = own.length + away.filter((machine) => mayBelongTo(machine, group)).length;
    for (let missing = count - present; missing > 0; missing -= 1)
      steps.push({ kind: "create", group, config: asSiblings });
  }
  // The machine of a release command goes away by itself.
  const others = machines.filter(
    ({ config }) => !wanted.has(config.metadata?.[GROUP_METADATA] ?? "") && !config.metadata?.[RELEASE_METADATA],
  );
  return { steps: steps.toSorted((a, b) => rank(a) - rank(b)), others, leftovers: left, away };
}

/** A file that says nothing of where machines may connect to takes away no rules that someone gave a machine. */
function withWall(config: MachineConfig, machine: Machine | undefined): MachineConfig {
  const network = machine?.config.network;
  return config.network === undefined && network !== undefined ? { ...config, network } : config;
}

/** Nor does a file take away metadata that someone gave a machine: it can name none. A deploy has keys of its own. */
function withLabels(config: MachineConfig, { config: { metadata = {} } }: Machine): MachineConfig {
  const labels = Object.entries(metadata).filter(([key]) => !key.startsWith(DEPLOY_KEYS));
  if (labels.length === 0) return config;
  return { ...config, metadata: { ...Object.fromEntries(labels), ...config.metadata } };
}

/** Of a machine without a version, its host has not published the configuration yet. */
function mayBelongTo(machine: Machine, group: string): boolean {
  return groupOf(machine) === group || machine.version === "";
}

/** The process group of a machine. */
export function groupOf(machine: Machine): string | undefined {
  return machine.config.metadata?.[GROUP_METADATA];
}

/** Whether the machine is running or should be: an update starts a machine that failed or crashed. */
export function isUp({ state, crash }: Machine): boolean {
  return UP.has(state) || (state === "stopped" && crash !== null);
}

function rank(step: Step): number {
  if (step.kind === "update") return step.running ? 0 : 2;
  return step.kind === "create" ? 1 : 3;
}

function isCurrent({ config, image, state, crash }: Machine, wanted: MachineConfig, digest: string): boolean {
  return (
    state !== "failed" &&
    crash === null &&
    image.digest === digest &&
    // The digest says which image it is, however it is named.
    sameConfig(config, wanted)
  );
}

/** Whether two configurations say the same, apart from the image. */
export function sameConfig(one: MachineConfig, other: MachineConfig): boolean {
  return canonical(comparable(one)) === canonical(comparable(other));
}

function comparable(config: MachineConfig): MachineConfig {
  return { metadata: {}, ...asWanted(config), image: "" };
}

/** The configuration as one would write it, to compare it or for a similar machine: its volumes by name, and in nobody's place. */
export function asWanted(config: MachineConfig): MachineConfig {
  const wanted = withoutPredecessor(config);
  if (wanted.mounts === undefined) return wanted;
  const mounts = wanted.mounts.map(({ volume, source, name, ...mount }) => ({
    ...mount,
    volume: name ?? volume ?? source ?? "",
  }));
  return { ...wanted, mounts };
}

/** JSON that does not depend on the order of keys. */
function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return `{${entries
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, part]) => `${JSON.stringify(key)}:${canonical(part)}`)
    .join(",")}}`;
}
