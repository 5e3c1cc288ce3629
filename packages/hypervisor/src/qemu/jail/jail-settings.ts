/** What jails on this host are made of. */
import type { Places } from "./arguments.ts";
import type { Cgroups } from "./cgroups.ts";

/** What the platform found out about jails on this host. */
export interface JailSettings {
  /** Path of the launcher. */
  launcher: string;
  /** Real path of QEMU. */
  program: string;
  /** What QEMU needs of the host. */
  host: Places;
  /** Of /dev/kvm, where machines use it. */
  kvmGroup?: number | undefined;
  /** The first user of machines. Undefined without root: they all have the platform's. */
  firstUid?: number | undefined;
  cgroups?: Cgroups | undefined;
}
