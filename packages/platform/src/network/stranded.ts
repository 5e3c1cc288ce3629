/** Explains which sleeping machines belong to another network than the current one, and how to keep their memory. Pure. */
import { formatSubnet } from "../lib/ipv4.ts";
import { withoutPeriod } from "../lib/text.ts";
import { isBridgeName } from "./bridge/names.ts";
import type { Taken } from "./bridge/select.ts";
import type { KnownMachine, NetworkMode } from "./contract.ts";

/** The current network, and why it is the current one. */
export interface Present {
  mode: NetworkMode;
  /** The bridge's subnet, as `a.b.c.d/n`. */
  subnet?: string;
  /** HIBERNAUT_NETWORK. */
  modeSetting: "auto" | "bridge" | "user";
  /** HIBERNAUT_NETWORK_SUBNET. */
  subnetSetting: string;
  /** Why the network is not a bridge. */
  reason: string;
  /** The machines' earlier subnet, when something else on the host has it now. */
  taken?: Taken | undefined;
  owns(address: string): boolean;
}

/** Returns a message for each group of machines that would lose their memory: how many, why, and how to keep it. */
export function strandedNotes(machines: readonly KnownMachine[], present: Present): string[] {
  const stranded = machines.filter(({ memory, address }) => memory === "asleep" && !present.owns(address));
  const awake = machines.some(({ memory, address }) => memory === "awake" && present.owns(address));
  const groups = [stranded.filter(isUser), stranded.filter((machine) => !isUser(machine))];
  return groups.flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const count = others.length + 1;
    const many = count === 1 ? "1 sleeping machine belongs" : `${count} sleeping machines belong`;
    const lose = count === 1 ? "It loses its memory when it starts" : "Each loses its memory when it starts";
    const { where, why, way } = isUser(first) ? ofUser(present) : ofBridge(first, present, awake);
    const stop = awake ? "stop the running machines, then this platform" : "stop this platform";
    const steps = [stop, ...(way === undefined ? [] : [way])].join(", ");
    return `${many} to ${where}, but ${why}. ${lose} (network_changed). To keep it, ${steps}, and start this platform again.`;
  });
}

interface Cause {
  where: string;
  why: string;
  /** What else to do while the platform is stopped. */
  way?: string;
}

function isUser({ address }: KnownMachine): boolean {
  return address.startsWith("127.");
}

function ofUser({ modeSetting }: Present): Cause {
  const why = `the machines' network is a bridge now${modeSetting === "bridge" ? ", as HIBERNAUT_NETWORK says" : ""}`;
  return { where: "the user-mode network", why, way: "set HIBERNAUT_NETWORK=user" };
}

function ofBridge(
  { address }: KnownMachine,
  { mode, modeSetting, subnet, subnetSetting, reason, taken }: Present,
  awake: boolean,
): Cause {
  if (mode === "user") {
    if (modeSetting === "user")
      return { where: "a bridge", why: "HIBERNAUT_NETWORK is user now", way: "set HIBERNAUT_NETWORK=auto" };
    const why = `there is none now: ${withoutPeriod(reason)}`;
    return { where: "a bridge", why, way: "provide what a bridge needs (`hibernaut doctor` checks it)" };
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
  const where = formatSubnet(taken.subnet);
  const { device, folder } = taken;
  if (folder !== undefined) {
    const why = `the bridge ${device} of the platform on ${folder} has that subnet`;
    return {
      where,
      why,
      way: `run \`HIBERNAUT_DATA_DIR=${folder} hibernaut uninstall --keep-link\` (it keeps that directory, and ends machines that are still running there)`,
    };
  }
  if (isBridgeName(device)) {
    const why = `the bridge ${device} of another platform has that subnet`;
    return { where, why, way: "run `hibernaut uninstall --keep-link` with the HIBERNAUT_DATA_DIR of that platform" };
  }
  const why = device === "" ? "a route of the host has that subnet" : `${device} has that subnet`;
  return { where, why, way: device === "" ? "remove that route" : `remove the subnet from ${device}` };
}
