/** Where an app answers, as seen from this host. */
import type { App, Machine } from "@hibernaut/client";
import type { Context } from "./context.ts";
import { isLoopback } from "./upload/where.ts";

/** The URLs of the app that work from here: names under `localhost` work only on the platform's own host. */
export function urlsFrom(apiUrl: string, { urls }: Pick<App, "urls">): string[] {
  if (isLoopback(apiUrl)) return urls;
  return urls.filter((url) => !new URL(url).hostname.endsWith(".localhost"));
}

/** Whether the proxy sends requests to the machine. An app without such a machine answers nowhere. */
export function hasService({ config }: Pick<Machine, "config">): boolean {
  return (config.services ?? []).length > 0;
}

/** `App shop answers at http://shop.localhost:8080/` or at TCP ports; undefined when it is not known. */
export async function answersAt(context: Context): Promise<string | undefined> {
  const client = await context.client();
  const [app, machines] = await Promise.all([client.getApp(context.app), client.listMachines(context.app)]);
  const { http, ports } = servicesOf(machines, app);
  const urls = http ? urlsFrom(client.apiUrl, app) : [];
  const places = [...urls, ...ports.map((port) => `TCP port ${port} of the proxy`)];
  return places.length === 0 ? undefined : `App ${context.app} answers at ${places.join(" and ")}`;
}

/** Whether the app takes HTTP requests, and at which TCP ports it takes connections. In a network, an HTTP service says so. */
function servicesOf(
  machines: readonly Pick<Machine, "config">[],
  { network }: Pick<App, "network">,
): { http: boolean; ports: number[] } {
  const services = machines.flatMap(({ config }) => config.services ?? []);
  const ports = services.flatMap(({ ports: own = [] }) => own.map(({ port }) => port));
  const http = services.some(({ protocol, ports: own = [] }) =>
    network === undefined ? own.length === 0 : protocol === "http",
  );
  return { http, ports: [...new Set(ports)] };
}
