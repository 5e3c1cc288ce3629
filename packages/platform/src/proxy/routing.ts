/** Which app a hostname leads to: a pure rule. */

/** Returns the app that has the hostname, or the app in `<app>.<suffix>`. Undefined if the hostname is neither. */
export function appOf(
  host: string,
  hostnames: Readonly<Record<string, string>>,
  suffixes: readonly string[],
): string | undefined {
  const name = host.endsWith(".") ? host.slice(0, -1) : host;
  if (Object.hasOwn(hostnames, name)) return hostnames[name];
  for (const suffix of suffixes) {
    const app = name.endsWith(`.${suffix}`) ? name.slice(0, -suffix.length - 1) : "";
    if (app !== "" && !app.includes(".")) return app;
  }
  return undefined;
}
