/** How much of each thing an app may have. Pure. */
import { HibernautError } from "./errors.ts";

/** What is limited, as the API names it. Memory is in MB, volumes are in GB. */
export const QUOTA_NAMES = [
  "machines",
  "running",
  "cpus",
  "memory_mb",
  "volume_gb",
  "hostnames",
  "certificates",
  "previews",
] as const;

export type QuotaName = (typeof QUOTA_NAMES)[number];

/** A limit, or an amount, for each of them. As a limit, 0 means that there is none. */
export type Quota = Readonly<Record<QuotaName, number>>;

/** The limits of one app in place of the platform's. What is absent is as for every app. */
export type QuotaOverrides = Partial<Quota>;

const NOUNS: Readonly<Record<QuotaName, string>> = {
  machines: "machines",
  running: "machines that run at once",
  cpus: "CPUs of all its machines",
  memory_mb: "MB of memory of all its machines",
  volume_gb: "GB of volumes",
  hostnames: "hostnames",
  certificates: "certificates",
  previews: "previews",
};

/** What someone wants to add, and what the app has. */
interface Wish {
  app: string;
  limits: Quota;
  used: Quota;
  wanted: Partial<Quota>;
}

/** Returns why the app may not have more of something; undefined if it may. What does not grow is never refused. */
export function overQuota({ app, limits, used, wanted }: Wish): HibernautError | undefined {
  const name = QUOTA_NAMES.find((each) => {
    const more = wanted[each] ?? 0;
    return more > 0 && limits[each] > 0 && used[each] + more > limits[each];
  });
  if (name === undefined) return undefined;
  const message = `The quota of app ${app} for ${NOUNS[name]} is ${limits[name]}: it has ${used[name]}, and this needs ${wanted[name]} more. Remove or stop some, or have someone with full access raise the quota: \`hibernaut apps update ${app} --help\`.`;
  const details = { app_name: app, quota: name, limit: limits[name], used: used[name], wanted: wanted[name] };
  return new HibernautError("failed_precondition", message, details);
}
