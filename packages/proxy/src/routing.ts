/** Which app a hostname leads to, and whether it names one of its machines: pure rules. */

/** Returns the app that has the hostname, or the app in `<app>.<suffix>`. Undefined if the hostname is neither. */
export function appOf(
  host: string,
  hostnames: Readonly<Record<string, string>>,
  suffixes: readonly string[],
): string | undefined {
  const name = withoutDot(host);
  if (Object.hasOwn(hostnames, name)) return hostnames[name];
  for (const suffix of suffixes) {
    const app = name.endsWith(`.${suffix}`) ? name.slice(0, -suffix.length - 1) : "";
    if (app !== "" && !app.includes(".")) return app;
  }
  return undefined;
}

/** A hostname of one machine, in parts. */
interface MachineHost {
  app: string;
  /** What comes before the app: a machine's id or name, maybe with a port. */
  label: string;
}

/** Returns the parts of `<label>.<app>.<suffix>`. Undefined for every other hostname. */
export function machineHostOf(host: string, suffixes: readonly string[]): MachineHost | undefined {
  const name = withoutDot(host);
  for (const suffix of suffixes) {
    if (!name.endsWith(`.${suffix}`)) continue;
    const [label = "", app = "", ...more] = name.slice(0, -suffix.length - 1).split(".");
    if (label !== "" && app !== "" && more.length === 0) return { app, label };
  }
  return undefined;
}

/** A name may end in the dot of the root. */
export function withoutDot(host: string): string {
  return host.endsWith(".") ? host.slice(0, -1) : host;
}
