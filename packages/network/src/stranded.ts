/** Explains which machines belong to another network than the current one, and how to keep their memory. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import { formatSubnet } from "@hibernaut/lib/ipv4";
import { idsOf, modeOf } from "./bound.ts";
import type { Taken } from "./bridge/select.ts";
import { machineHost } from "./bridge/subnet.ts";
import type { KnownMachine, NetworkMode } from "./contract.ts";
import { isBridgeName } from "./contract.ts";

/** The current network, and why it is the current one. */
export interface Present {
  mode: NetworkMode;
  /** The bridge's subnet, as `a.b.c.d/n`. */
  subnet?: string;
  /** HIBERNAUT_NETWORK. */
  modeSetting: "auto" | "bridge" | "user";
  /** HIBERNAUT_NETWORK_SUBNET. */
  subnetSetting: string;
  /** The machines' earlier subnet, when something else on the host has it now. */
  taken?: Taken | undefined;
  owns(address: string): boolean;
}

/** Returns a message for each group of machines that would lose their memory: how many, which, why, and how to keep it. */
export function strandedNotes(machines: readonly KnownMachine[], present: Present): string[] {
  const stranded = machines.filter(({ memory, address }) => memory !== undefined && !present.owns(address));
  const awake = machines.some(({ memory, address }) => memory === "awake" && present.owns(address));
  const groups = [stranded.filter(isUser), stranded.filter((machine) => !isUser(machine))];
  return groups.flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const one = group.length === 1;
    const kind = group.every(({ memory }) => memory === "asleep") ? "sleeping" : "sleeping or running";
    const many = `${group.length} ${kind} machine${one ? " belongs" : "s belong"}`;
    const { where, why, way } = isUser(first) ? ofUser(present) : ofBridge(first, present, awake);
    const steps = [...(awake ? [END_RUNNING] : []), ...(way === undefined ? [] : [way])].join(", ");
    return `${many} to ${where}, but ${why}: ${idsOf(group)}. ${one ? "It" : "Each"} would lose its memory (network_changed). To keep it, ${steps}, and start the platform again.`;
  });
}

/**
 * Throws `failed_precondition` when machines would lose their memory in the present network, unless `dropSnapshots`
 * says that they may; or when they would get other addresses although nobody asked for that.
 */
export function refuseLoss(
  machines: readonly KnownMachine[],
  present: Present,
  { dropSnapshots }: { dropSnapshots: boolean },
): void {
  const { taken, subnet } = present;
  const others = taken && machines.filter(({ address }) => machineHost(taken.subnet, address) !== undefined);
  const moves = taken !== undefined && others !== undefined && others.length > 0;
  const move = moves ? `HIBERNAUT_NETWORK_SUBNET=${subnet} ` : "";
  const notes = strandedNotes(machines, present);
  if (notes.length > 0 && (!dropSnapshots || moves)) {
    const giveUp = `To give it up instead: \`${move}hibernaut serve --drop-snapshots\`.`;
    throw new HibernautError("failed_precondition", [...notes, giveUp].join(" "));
  }
  if (!moves) return;
  const { where, why, way } = ofTaken(taken);
  const many = others.length === 1 ? "1 machine belongs" : `${others.length} machines belong`;
  throw new HibernautError(
    "failed_precondition",
    `${many} to ${where}, but ${why}: ${idsOf(others)}. To keep their addresses, ${way}, and start the platform again. To give them others: \`${move}hibernaut serve\`.`,
  );
}

/** There is no platform yet that could stop them. */
const END_RUNNING = "end the running machines with `hibernaut uninstall --keep-link`";

interface Cause {
  where: string;
  why: string;
  /** What else to do while the platform is stopped. */
  way?: string;
}

function isUser(machine: KnownMachine): boolean {
  return modeOf(machine) === "user";
}

function ofUser({ modeSetting }: Present): Cause {
  const why = `the machines' network is a bridge now${modeSetting === "bridge" ? ", as HIBERNAUT_NETWORK says" : ""}`;
  return { where: "the user-mode network", why, way: "set HIBERNAUT_NETWORK=user" };
}

function ofBridge(
  { address }: KnownMachine,
  { mode, modeSetting, subnet, subnetSetting, taken }: Present,
  awake: boolean,
): Cause {
  if (mode === "user") {
    if (modeSetting === "user")
      return { where: "a bridge", why: "HIBERNAUT_NETWORK is user now", way: "set HIBERNAUT_NETWORK=auto" };
    const why = "the other machines belong to the user-mode network";
    return { where: "a bridge", why, way: "set HIBERNAUT_NETWORK=bridge, which costs the others theirs" };
  }
  if (taken === undefined) {
    const where = `another subnet, for instance at the address ${address}`;
    if (subnetSetting !== "auto")
      return {
        where,
        why: `HIBERNAUT_NETWORK_SUBNET is ${subnetSetting} now`,
        way: "set it to their subnet or to auto",
      };
    // Their subnet is free, and is chosen as soon as no guest needs the current one.
    if (awake) return { where, why: `machines are running in ${subnet}, the current one` };
    return { where, why: `the current one is ${subnet}`, way: "set HIBERNAUT_NETWORK_SUBNET to theirs" };
  }
  return ofTaken(taken);
}

/** Something else on the host has the machines' subnet. */
function ofTaken(taken: Taken): Required<Cause> {
  const where = formatSubnet(taken.subnet);
  const { device, folder } = taken;
  if (folder !== undefined) {
    const why = `the bridge ${device} of the platform on ${folder} has that subnet`;
    return {
      where,
      why,
      way: `make sure that nobody needs that platform, as when this directory is a copy of it, then run \`HIBERNAUT_DATA_DIR=${folder} hibernaut uninstall --keep-link\` (it keeps that directory, and ends machines that are still running there)`,
    };
  }
  if (isBridgeName(device)) {
    const why = `the bridge ${device} of another platform has that subnet`;
    return {
      where,
      why,
      way: "make sure that nobody needs that platform, then run `hibernaut uninstall --keep-link` with its HIBERNAUT_DATA_DIR",
    };
  }
  const why = device === "" ? "a route of the host has that subnet" : `${device} has that subnet`;
  return { where, why, way: device === "" ? "remove that route" : `remove the subnet from ${device}` };
}
