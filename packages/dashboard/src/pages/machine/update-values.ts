/** The parts of a machine's configuration that its page changes. Pure. */
import type { MachineConfig } from "@hibernaut/client/browser";

/** The platform's defaults for what a configuration leaves out. */
const DEFAULT_MEMORY_MB = 256;
const DEFAULT_CPUS = 1;

/** Values of a form. */
interface UpdateParts {
  image: string;
  memory_mb: number;
  cpus: number;
}

/** These parts of a configuration. */
export function partsOf({ image, guest }: MachineConfig): UpdateParts {
  return { image, memory_mb: guest?.memory_mb ?? DEFAULT_MEMORY_MB, cpus: guest?.cpus ?? DEFAULT_CPUS };
}

/** A configuration with what someone changed from what was shown to them. Everything else stays as it is now. */
export function withParts(present: MachineConfig, shown: UpdateParts, given: UpdateParts): MachineConfig {
  const { image, memory_mb: memory, cpus } = partsOf(present);
  return {
    ...present,
    image: given.image === shown.image ? image : given.image,
    guest: {
      ...present.guest,
      memory_mb: given.memory_mb === shown.memory_mb ? memory : given.memory_mb,
      cpus: given.cpus === shown.cpus ? cpus : given.cpus,
    },
  };
}
