/** The kernel and initramfs, which contains the agent, that boot a machine. Paths are absolute. */
export interface GuestBundle {
  version: string;
  /** The protocol that its agent speaks: see `agent-protocol.ts`. */
  protocol: number;
  kernel: string;
  initrd: string;
}
