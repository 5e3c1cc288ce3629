/** The metrics of a proxy. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { AccessEntry, LeaseStart } from "./contract.ts";

/** Buckets from a warm start to a cold start under emulation on a busy host. */
const WAKE_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60];

const WAKE_KINDS: readonly LeaseStart["kind"][] = ["warm", "resume", "cold"];
/** The label of requests for hostnames that no app has. */
const UNKNOWN = "unknown";
/**
 * How many apps that no longer exist keep their series. A deploy may take an app's last machine away for a moment, and
 * its counters should not begin again; a program that makes an app for each of its runs must not make series without end.
 */
export const MOST_GONE_APPS = 200;

interface ProxyCounts {
  /** How many requests wait for a machine, by app. */
  held(): Map<string, number>;
  /** How many requests are in progress. */
  inFlight(): number;
  /** Whether the proxy knows a machine of this app. */
  exists(app: string): boolean;
}

/** Registers a proxy's metrics. Returns what has to be told of. */
export function proxyMetrics(registry: Registry, counts: ProxyCounts) {
  const registers = [registry];
  new Gauge({
    name: "hibernaut_proxy_held_requests",
    help: "Requests waiting for a machine, by app.",
    labelNames: ["app"],
    registers,
    collect() {
      this.reset();
      for (const [app, held] of counts.held()) this.set({ app }, held);
    },
  });
  new Gauge({
    name: "hibernaut_proxy_requests_in_flight",
    help: "Requests in progress, including upgraded connections.",
    registers,
    collect() {
      this.set(counts.inFlight());
    },
  });
  const wakes = new Histogram({
    name: "hibernaut_proxy_wake_seconds",
    help: "How long requests waited for a machine that woke for them, by kind of start.",
    labelNames: ["app", "kind"],
    buckets: WAKE_SECONDS,
    registers,
  });
  // Counted here, and given to prom-client only when it collects: its bookkeeping of labels is too slow for every request.
  const counted = new Map<string, { labels: { app: string; status: string }; count: number }>();
  /** The apps that have series, in the order in which they came, with the codes in them: nothing else knows those. */
  const codesByApp = new Map<string, Set<string>>();
  const codesOf = (app: string) => {
    const codes = codesByApp.get(app) ?? new Set();
    codesByApp.set(app, codes);
    return codes;
  };
  const countRequest = (app: string, status: string) => {
    const key = `${status} ${app}`;
    const known = counted.get(key);
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    counted.set(key, { labels: { app, status }, count: 1 });
    codesOf(app);
  };
  const forget = (app: string) => {
    for (const [key, { labels }] of counted) if (labels.app === app) counted.delete(key);
    for (const code of codesOf(app)) refused.remove({ app, code });
    for (const kind of WAKE_KINDS) wakes.remove({ app, kind });
    codesByApp.delete(app);
  };
  const forgetGone = () => {
    const gone = [...codesByApp.keys()].filter((app) => app !== UNKNOWN && !counts.exists(app));
    for (const app of gone.slice(0, Math.max(0, gone.length - MOST_GONE_APPS))) forget(app);
  };
  new Counter({
    name: "hibernaut_proxy_requests_total",
    help: "Requests by app and class of status; `none` for requests that were cut off before they had one.",
    labelNames: ["app", "status"],
    registers,
    collect() {
      forgetGone();
      this.reset();
      for (const { labels, count } of counted.values()) this.inc(labels, count);
    },
  });
  const refused = new Counter({
    name: "hibernaut_proxy_refused_total",
    help: "Requests that the proxy itself answered or ended, by reason.",
    labelNames: ["app", "code"],
    registers,
  });
  const forwarded = new Counter({
    name: "hibernaut_proxy_forwarded_total",
    help: "Requests that a machine of another host answered, by that host.",
    labelNames: ["host"],
    registers,
  });
  return {
    /** A machine of another host answered. */
    onForwarded(host: string) {
      forwarded.inc({ host });
    },
    onWake(app: string, { kind, durationMs }: LeaseStart) {
      codesOf(app);
      wakes.observe({ app, kind }, durationMs / 1000);
    },
    onAccess({ appName, status, error }: AccessEntry) {
      // A hostname that a client made up must not become a series.
      const app = appName ?? UNKNOWN;
      countRequest(app, status === undefined ? "none" : `${Math.floor(status / 100)}xx`);
      if (error === undefined) return;
      codesOf(app).add(error);
      refused.inc({ app, code: error });
    },
  };
}
