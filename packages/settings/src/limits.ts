/** Settings of what apps and tokens may use. */
import { PREVIEW_TTL_S } from "@hibernaut/domain/limits";
import { duration, integer, size } from "./forms.ts";

/** Where quotas and rates are explained. */
const QUOTA = "See [quotas](tokens.md#quotas-of-apps). `0`: no limit.";
const RATE = "Beyond it, requests are refused with status 429 until the minute is over. `0`: no limit.";

const count = (env: string, what: string, { usual = 0, why = "" } = {}) =>
  integer(env, {
    default: usual,
    min: 0,
    max: 1_000_000,
    description: `How many ${what} an app may have. ${why}${QUOTA}`,
  });

const rate = (env: string, given: { default: number; what: string }) =>
  integer(env, {
    default: given.default,
    min: 0,
    max: 10_000_000,
    description: `How many requests per minute each token may make that ${given.what}. The default is far above what people and deploys need, and stops a program that went wild. ${RATE}`,
  });

export const LIMIT_SETTINGS = {
  quotaMachines: count("HIBERNAUT_QUOTA_MACHINES", "machines"),
  quotaRunning: count("HIBERNAUT_QUOTA_RUNNING", "machines that run at once"),
  quotaCpus: count("HIBERNAUT_QUOTA_CPUS", "CPUs, those of all its machines together,"),
  quotaMemoryMb: size("HIBERNAUT_QUOTA_MEMORY", {
    default: 0,
    min: 0,
    max: 1_073_741_824,
    description: `How much memory the machines of an app may have together, whether they run or not. ${QUOTA}`,
  }),
  quotaVolumeGb: count("HIBERNAUT_QUOTA_VOLUME_GB", "GB of volumes"),
  quotaHostnames: count("HIBERNAUT_QUOTA_HOSTNAMES", "hostnames", {
    usual: 100,
    why: "Every proxy keeps all of them. ",
  }),
  quotaCertificates: count("HIBERNAUT_QUOTA_CERTIFICATES", "certificates", {
    usual: 100,
    why: "The platform manages up to 5000, and authorities limit orders for a domain. ",
  }),
  quotaPreviews: count("HIBERNAUT_QUOTA_PREVIEWS", "[previews](previews.md)", {
    usual: 10,
    why: "Each has a quota of its own, so this bounds how much more than its own an app takes with them. ",
  }),
  previewTtlS: duration("HIBERNAUT_PREVIEW_TTL", {
    unit: "s",
    default: 259_200,
    min: PREVIEW_TTL_S.minimum,
    max: PREVIEW_TTL_S.maximum,
    description:
      "How long a [preview](previews.md) is kept after its last deploy, unless that says otherwise. The default outlives a weekend.",
  }),
  previewGraceMs: duration("HIBERNAUT_PREVIEW_GRACE", {
    default: 600_000,
    min: 1000,
    max: 86_400_000,
    description:
      "For how long a [preview](previews.md#when-a-preview-is-destroyed) has to have been past its time before it is destroyed. The platform counts it from when it first sees that, so that a clock which is wrong after a boot has time to be set.",
  }),
  quotaUploads: integer("HIBERNAUT_QUOTA_UPLOADS", {
    default: 8,
    min: 0,
    max: 32,
    description: `How many [uploads of images](images.md) by tokens that are limited to an app may be open at once. The platform takes 32. ${QUOTA}`,
  }),
  auditMaxMb: size("HIBERNAUT_AUDIT_MAX_SIZE", {
    default: 64,
    min: 0,
    max: 1_048_576,
    description:
      "How much disk the [audit log](tokens.md#see-who-changed-what) may take, in four files: enough for 100,000 changes. The oldest file is deleted when a new one begins. `0`: no audit log.",
  }),
  rateReads: rate("HIBERNAUT_RATE_READS", { default: 12_000, what: "only read" }),
  rateChanges: rate("HIBERNAUT_RATE_CHANGES", { default: 1200, what: "create or change something" }),
  rateExecs: rate("HIBERNAUT_RATE_EXECS", { default: 1200, what: "run a command, copy files or forward a port" }),
};
