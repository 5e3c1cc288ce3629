/** Describes what a snapshot was taken from, and decides whether it can be resumed now. */
import { UNRECORDED_PROTOCOL, unspoken } from "@hibernaut/domain/agent-protocol";
import { differenceIn, type HypervisorIdentity } from "@hibernaut/hypervisor";
import { type Static, Type } from "typebox";
import { Value } from "typebox/value";
import { readCheckedJson } from "./checked-json.ts";

const FileEntry = Type.Object({
  size: Type.Integer({ minimum: 0 }),
  /** SHA-256, hex: of the whole device state; of evenly spaced pages of the memory. */
  sha256: Type.String({ pattern: "^[0-9a-f]{64}$" }),
});

/** The content of a snapshot's manifest.json. Format 1, of version 0.1, has no checksum of its own. */
export const SnapshotManifest = Type.Object({
  format: Type.Union([Type.Literal(1), Type.Literal(2)]),
  machine_id: Type.String(),
  machine_version: Type.String(),
  generation: Type.String(),
  created_at: Type.String(),
  /** The guest's clock when it was paused, in milliseconds since 1970. Earlier versions did not record it. */
  guest_clock_ms: Type.Optional(Type.Number()),
  hypervisor: Type.Object({
    hypervisor: Type.String(),
    version: Type.String(),
    accelerator: Type.Unsafe<HypervisorIdentity["accelerator"]>({ type: "string", enum: ["kvm", "tcg", "fake"] }),
    cpu_model: Type.String(),
    cpu_features: Type.Optional(Type.Array(Type.String())),
    machine_type: Type.String(),
  }),
  bundle_version: Type.String(),
  /** What the agent in the memory speaks. Version 0.1 did not record it. */
  agent_protocol: Type.Optional(Type.Integer()),
  image_digest: Type.String(),
  cpus: Type.Integer(),
  memory_mb: Type.Integer(),
  files: Type.Object({ memory: FileEntry, devices: FileEntry }),
});

export type SnapshotManifest = Static<typeof SnapshotManifest>;

/** What a snapshot was taken from, as its manifest has it. */
export type TakenFrom = Pick<
  SnapshotManifest,
  | "machine_id"
  | "machine_version"
  | "hypervisor"
  | "bundle_version"
  | "agent_protocol"
  | "image_digest"
  | "cpus"
  | "memory_mb"
>;

/** The code and sizes that a snapshot was taken with, and that it must match to be resumed. */
export interface SnapshotOrigin {
  machineId: string;
  machineVersion: string;
  hypervisor: HypervisorIdentity;
  /** The machine's own bundle, whichever is the current one. */
  bundleVersion: string;
  /** The protocol that the agent of that bundle speaks. */
  agentProtocol: number;
  imageDigest: string;
  cpus: number;
  memoryMb: number;
}

/**
 * Says why the hypervisor that is there now cannot resume what `was` suspended: a stable word, a colon and the
 * difference. Undefined when it can.
 */
export type HypervisorRule = (was: HypervisorIdentity, now: HypervisorIdentity) => string | undefined;

/** The rule of hypervisors that resume nothing but their own snapshots. */
export const sameHypervisor: HypervisorRule = (was, now) =>
  differenceIn(was, now, ["hypervisor", "version", "accelerator", "cpu_model", "machine_type"]);

/** Returns what the manifest of a snapshot says that is taken from this. */
export function takenFrom(origin: SnapshotOrigin): TakenFrom {
  return {
    machine_id: origin.machineId,
    machine_version: origin.machineVersion,
    hypervisor: origin.hypervisor,
    bundle_version: origin.bundleVersion,
    agent_protocol: origin.agentProtocol,
    image_digest: origin.imageDigest,
    cpus: origin.cpus,
    memory_mb: origin.memoryMb,
  };
}

/** Parses a manifest, which has a checksum of its own. Returns a reason, `snapshot_corrupt: ...`, when the text is not a valid one. */
export function parseManifest(text: string): SnapshotManifest | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "snapshot_corrupt: the manifest is not valid JSON";
  }
  if (!Value.Check(SnapshotManifest, value)) return "snapshot_corrupt: the manifest is missing expected fields";
  if (value.format === 1) return value;
  // Without the checksum, which is not part of what it says.
  return (readCheckedJson(text) as SnapshotManifest | undefined) ?? "snapshot_corrupt: the manifest has changed";
}

/** Returns why the snapshot cannot be resumed here: a stable word, a colon and what differs. Undefined when it can. */
export function mismatch(
  manifest: TakenFrom,
  now: SnapshotOrigin,
  refusedHypervisor: HypervisorRule = sameHypervisor,
): string | undefined {
  const differences: [string, string, string | number, string | number][] = [
    ["machine_changed", "machine", manifest.machine_id, now.machineId],
    ["machine_version_changed", "machine version", manifest.machine_version, now.machineVersion],
    ["guest_bundle_changed", "guest bundle", manifest.bundle_version, now.bundleVersion],
    ["image_changed", "image", manifest.image_digest, now.imageDigest],
    ["guest_size_changed", "CPUs", manifest.cpus, now.cpus],
    ["guest_size_changed", "memory in MB", manifest.memory_mb, now.memoryMb],
  ];
  const found = differences.find(([, , was, is]) => was !== is);
  if (found !== undefined) return `${found[0]}: ${found[1]} was ${found[2]}, is ${found[3]}`;
  const refused = refusedHypervisor(manifest.hypervisor, now.hypervisor);
  if (refused !== undefined) return refused;
  const unknown = unspoken(manifest.agent_protocol ?? UNRECORDED_PROTOCOL);
  return unknown && `guest_bundle_changed: ${unknown}`;
}
