/** What machines still need, and a cleanup must therefore keep. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { MachineStore } from "@hibernaut/store";

/** Returns the digests of the images that machines use, or will use once their update is done. */
export function imagesInUse(machines: MachineStore): Set<string> {
  return imagesOf(machines.list());
}

/** The same for some machines. */
export function imagesOf(records: readonly Pick<MachineRecord, "imageDigest" | "pending">[]): Set<string> {
  return new Set(
    records.flatMap(({ imageDigest, pending }) => [imageDigest, ...(pending ? [pending.imageDigest] : [])]),
  );
}

/** Returns the versions of the guest bundles that machines boot, or will boot once their update is done. */
export function bundlesInUse(machines: MachineStore): Set<string> {
  return new Set(
    machines
      .list()
      .flatMap(({ bundleVersion, pending }) => [bundleVersion, ...(pending ? [pending.bundleVersion] : [])]),
  );
}
