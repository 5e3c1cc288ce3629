/** What a guest is made of: image, bundle, disks, network. */
import { guestSize, servicePorts } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import type { VmmSpec } from "@hibernaut/hypervisor";
import type { Image } from "@hibernaut/images";
import { networkMachine } from "@hibernaut/network";
import type { EffectPorts } from "./ports.ts";

type SpecPorts = Pick<EffectPorts, "images" | "bundles" | "files" | "volumes" | "network">;

/** The machine's image. `failed_precondition` when it is no longer in the store. */
export async function imageOf(record: MachineRecord, { images }: Pick<EffectPorts, "images">): Promise<Image> {
  const image = await images.get(record.imageDigest);
  if (image !== undefined) return image;
  throw new HibernautError(
    "failed_precondition",
    `The image ${record.config.image} (${record.imageDigest}) is no longer in the image store. Update the machine with its image.`,
  );
}

/**
 * Everything that the hypervisor needs to start the machine. Before a `cold` start volumes may grow; a guest that
 * resumes has its disks in the size that it knows. `failed_precondition` when image or guest bundle are gone.
 */
export async function specOf(
  record: MachineRecord,
  { cold }: { cold: boolean },
  ports: SpecPorts,
  signal: AbortSignal,
): Promise<{ spec: VmmSpec; image: Image }> {
  const image = await imageOf(record, ports);
  const bundle = ports.bundles.get(record.bundleVersion);
  if (bundle === undefined) {
    throw new HibernautError(
      "failed_precondition",
      `Guest bundle ${record.bundleVersion} is gone. Run \`hibernaut machine update ${record.id} --yes\`.`,
    );
  }
  const paths = ports.files.paths(record.id);
  const { cpus, memoryMb } = guestSize(record.config);
  const disks = await ports.volumes.disks(record.config.mounts, { grow: cold, signal });
  const network = await ports.network.attach(networkMachine(record), servicePorts(record.config));
  const spec: VmmSpec = {
    machineId: record.id,
    cpus,
    memoryMb,
    bundle,
    image: image.rootfs,
    layer: paths.layer,
    volumes: disks.map(({ id, file }) => ({ serial: id, file })),
    memory: paths.memory,
    runDir: paths.run,
    consoleLog: paths.console,
    network,
  };
  return { spec, image };
}
