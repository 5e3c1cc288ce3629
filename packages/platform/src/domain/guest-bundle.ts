/** The kernel and initramfs, which contains the agent, that boot a machine. Paths are absolute. */
export interface GuestBundle {
  version: string;
  kernel: string;
  initrd: string;
}
