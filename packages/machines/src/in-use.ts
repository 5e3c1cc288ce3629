/** What machines still need, and a cleanup must therefore keep. */
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { Store } from "@hibernaut/store";

type Users = Pick<Store, "machines" | "templates">;

/** Returns the digests of the images that machines use, or will use once their update is done, or once they are born. */
export function imagesInUse({ machines, templates }: Users): Set<string> {
  return imagesOf([...machines.list(), ...templates.list().map(({ machine }) => machine)]);
}

/** The same for some machines. */
export function imagesOf(records: readonly Pick<MachineRecord, "imageDigest" | "pending">[]): Set<string> {
  return new Set(
    records.flatMap(({ imageDigest, pending }) => [imageDigest, ...(pending ? [pending.imageDigest] : [])]),
  );
}

/** Returns the versions of the guest bundles that machines boot, or will boot once their update is done, or once they are born. */
export function bundlesInUse({ machines, templates }: Users): Set<string> {
  return new Set(
    [...machines.list(), ...templates.list().map(({ machine }) => machine)].flatMap(({ bundleVersion, pending }) => [
      bundleVersion,
      ...(pending ? [pending.bundleVersion] : []),
    ]),
  );
}
