/** What a platform says of itself whose machines have a bridge, so that apps reach each other. */
export const BRIDGE = {
  ...{ version: "0.1.0", region: "local", acceleratorReason: "a test", guestBundle: "1" },
  hypervisor: {
    hypervisor: "fake",
    version: "1",
    accelerator: "fake" as const,
    cpu_model: "none",
    machine_type: "none",
  },
  network: { mode: "bridge", reason: "a test" },
};
