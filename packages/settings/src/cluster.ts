/** Settings of a host in a cluster. A host alone uses none of them. */
import { choice, duration, integer, listen } from "./forms.ts";

export const CLUSTER_SETTINGS = {
  peerListen: listen("HIBERNAUT_PEER_LISTEN", {
    default: { host: "0.0.0.0", port: 4290 },
    description:
      "Where other [hosts of the cluster](cluster.md) reach this one. It is opened only in a cluster, and only hosts with a certificate of the cluster get an answer. All hosts must be able to connect to each other.",
  }),
  insecureEtcd: choice("HIBERNAUT_INSECURE_ETCD", ["on", "off"], {
    default: "off",
    description:
      "Whether this host stays in a cluster whose etcd is [neither encrypted nor asks for certificates](cluster.md#without-certificates), where other computers than this one reach it. `hibernaut cluster init --insecure-etcd` remembers the same.",
  }),
  clusterLeaseMs: duration("HIBERNAUT_CLUSTER_LEASE", {
    default: 10_000,
    min: 2000,
    max: 300_000,
    description:
      "How long this host counts as up after it was last heard of. It is renewed after a third of that. A shorter time notices a lost host sooner, and takes a busy one for lost.",
  }),
  clusterGraceMs: duration("HIBERNAUT_CLUSTER_GRACE", {
    default: 60_000,
    min: 0,
    max: 3_600_000,
    description:
      "How long this host keeps starting its own sleeping machines while [etcd is out of reach](cluster.md#when-etcd-is-away). Another host takes machines over only after that, so a longer time also delays their recovery.",
  }),
  quarantineMs: duration("HIBERNAUT_QUARANTINE", {
    default: 24 * 60 * 60_000,
    min: 0,
    max: 365 * 24 * 60 * 60_000,
    description:
      "How long this host keeps the files of machines that other hosts took over [while it was lost](cluster.md#when-a-host-is-lost).",
  }),
  moveRateMb: integer("HIBERNAUT_MOVE_RATE", {
    default: 0,
    min: 0,
    max: 100_000,
    description:
      "How fast machines that [move](cluster.md#move-a-machine), and [templates](cluster.md#use-templates-on-any-host), may leave this host, all together, in MB per second. 0: as fast as possible.",
  }),
};
