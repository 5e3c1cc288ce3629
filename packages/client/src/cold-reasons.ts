/** What the reasons for a cold start mean: the table of docs/machines.md, as ends of the sentence "it was cold: ...". */

/** By the word that `last_boot.reason` begins with. */
export const COLD_REASONS: Readonly<Record<string, string>> = {
  first_start: "it never ran before",
  volumes_mounted: "it was born from a template with volumes, which the memory of the template does not have",
  stopped: "it had been stopped or restarted, or its app had exited, so there was no snapshot",
  updated: "it had been updated, and there was no snapshot of the new version",
  secrets_changed: "the app's secrets changed while it slept, and the snapshot held the old ones",
  vmm_lost:
    "its QEMU process had ended unexpectedly: a crash of the guest's kernel or of QEMU, a guest that KVM could not continue, a kill, a reboot of the host",
  backup_without_memory: "it was restored from a backup that had only its disks",
  memory_dropped: "its client wanted it without the memory that it had",
  host_lost: "its host was lost, and another one has it now, without its memory and its files",
  moved_cold: "it was moved to another host without its memory",
  resume_lost: "a resume had begun, and guest and platform ended before the machine was running",
  snapshot_missing: "a file of the snapshot was missing",
  snapshot_corrupt: "a file of the snapshot was not what had been written",
  resume_failed: "QEMU or the guest did not wake in time",
  machine_changed: "the snapshot belonged to another machine",
  machine_version_changed: "the snapshot belonged to another version of the machine",
  guest_bundle_changed: "the platform no longer speaks the protocol of the agent in the snapshot",
  hypervisor_changed: "the snapshot was taken by another hypervisor",
  hypervisor_version_changed:
    "the snapshot was taken by a version of QEMU whose snapshots the present one does not resume",
  accelerator_changed:
    "the snapshot was taken under KVM and the host now uses software emulation, or the other way round",
  cpu_model_changed: "the snapshot was taken with another CPU, or with other features of it",
  machine_type_changed: "the snapshot was taken with another machine type of QEMU",
  image_changed: "the snapshot was taken from another image",
  network_changed: "its address belonged to another network than the present one",
  guest_size_changed: "the snapshot was taken with another number of CPUs or another memory size",
};
