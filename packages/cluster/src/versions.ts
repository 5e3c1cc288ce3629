/** Which versions of Hibernaut may be in one cluster: those of neighboring minor versions, as during an upgrade. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";

/** Throws `failed_precondition` unless hosts of the two versions understand each other. */
export function requireFitting(ours: string, host: string, theirs: string): void {
  const [major, minor] = partsOf(ours);
  const [theirMajor, theirMinor] = partsOf(theirs);
  if (major === theirMajor && Math.abs(minor - theirMinor) <= 1) return;
  const isOlder = major < theirMajor || (major === theirMajor && minor < theirMinor);
  const advice = isOlder
    ? `Upgrade this host to version ${theirs} first.`
    : `Upgrade the cluster's hosts, one minor version at a time, or install version ${theirs} here.`;
  throw new HibernautError(
    "failed_precondition",
    `This host has version ${ours} and host ${host} has ${theirs}. Hosts of a cluster may be one minor version apart. ${advice}`,
    { version: ours, host, host_version: theirs },
  );
}

function partsOf(version: string): [number, number] {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return [major, minor];
}
