/** Which ports a service has, and who may reach them. Pure. */
import type { Findings } from "./findings.ts";
import { speaksHttp } from "./known-images.ts";
import { isMapping, textOf, type Value } from "./values.ts";

/** A port of a service. */
export interface Port {
  internal: number;
  /** The number at which the host should have it. Undefined: any, or none. */
  published?: number;
  /** Whether the host has it for its own programs alone. */
  isLocal?: true;
}

/** What becomes of the ports of a service. */
export interface Ports {
  /** Reached by HTTP at the app's hostname. */
  http?: Port;
  /** Reached by TCP at ports of the host. */
  tcp: Port[];
  /** Reached by the services of the project alone. */
  inside: number[];
}

/** The host's interface and number, and the container's number and protocol: `127.0.0.1:8080:80/tcp`. */
const SHORT = /^(?:(?:(\[[0-9a-f:]+\]|[0-9.]+):)?(\d+(?:-\d+)?)?:)?(\d+(?:-\d+)?)(?:\/(\w+))?$/i;
/** A machine can have 32 services. */
const MOST_PORTS = 16;
const LOOPBACK = /^(?:127\.|\[?::1\]?$)/;

/** Reads `ports`. */
export function readPorts(value: Value | undefined, path: string, findings: Findings): Port[] {
  const list = Array.isArray(value) ? value : [];
  const ports = list.flatMap((entry) => readPort(entry, path, findings));
  if (ports.length <= MOST_PORTS) return ports;
  findings.warn(
    path,
    `${ports.length} ports are published, and a service has at most ${MOST_PORTS}. The first ones are taken.`,
  );
  return ports.slice(0, MOST_PORTS);
}

function readPort(entry: Value, path: string, findings: Findings): Port[] {
  const { host, published, target, protocol } = isMapping(entry) ? longForm(entry) : shortForm(textOf(entry) ?? "");
  if (target === undefined) return findings.error(path, `\`${JSON.stringify(entry)}\` is not a port.`) ?? [];
  if (protocol !== "tcp")
    return findings.warn(path, `Port ${target}/${protocol} is left out: nothing but TCP can wake a machine.`) ?? [];
  const isLocal = host !== undefined && LOOPBACK.test(host);
  if (isLocal)
    findings.note(
      path,
      `Port ${target} is published on ${host} only, so it stays a TCP port, which is where HIBERNAUT_TCP_LISTEN says: on the loopback by default. To have it at the app's hostname: x-hibernaut: {http: ${target}}.`,
    );
  const [inside, outside] = [range(target), range(published ?? "")];
  if (inside.some((port) => port < 1 || port > 65_535))
    return findings.error(path, `\`${target}\` is not a port.`) ?? [];
  return inside.map((internal, index) => {
    const number = outside[index];
    return { internal, ...(number !== undefined && { published: number }), ...(isLocal && { isLocal }) };
  });
}

function shortForm(text: string) {
  const [, host, published, target, protocol = "tcp"] = SHORT.exec(text.replace(/^:/, "")) ?? [];
  return { host, published, target, protocol: protocol.toLowerCase() };
}

function longForm(entry: { [key: string]: Value }) {
  const { host_ip: host, published, target, protocol } = entry;
  return {
    host: textOf(host),
    published: textOf(published),
    target: textOf(target),
    protocol: (textOf(protocol) ?? "tcp").toLowerCase(),
  };
}

function range(text: string): number[] {
  const [, from, to = from] = /^(\d+)(?:-(\d+))?$/.exec(text) ?? [];
  if (from === undefined || to === undefined) return [];
  const count = Math.min(Number(to) - Number(from) + 1, 2 * MOST_PORTS);
  return Array.from({ length: Math.max(0, count) }, (_, index) => Number(from) + index);
}

/** Reads `expose`. */
export function readExpose(value: Value | undefined): number[] {
  const list = Array.isArray(value) ? value : [];
  return list.flatMap((entry) => range((textOf(entry) ?? "").replace(/\/tcp$/, ""))).slice(0, MOST_PORTS);
}

/**
 * Decides how each port is reached. The first published one that speaks HTTP, by its number, is that of the hostname, unless
 * `http` says which is, or the host was to have it for itself. Further ones stay at their numbers, as TCP.
 *
 * @param http a port, false for none, undefined to decide here
 */
export function reachOf(
  { published, inside }: { published: readonly Port[]; inside: readonly number[] },
  http: number | false | undefined,
): Ports {
  const web =
    http === false
      ? undefined
      : http === undefined
        ? published.find(({ internal, isLocal }) => isLocal !== true && speaksHttp(internal))
        : (published.find(({ internal }) => internal === http) ?? { internal: http });
  // One without a number for the host is for those who ask the host which it got, and here nobody does.
  const tcp = published.filter((port) => port !== web && port.published !== undefined);
  const seen = new Set([...(web ? [web.internal] : []), ...tcp.map(({ internal }) => internal)]);
  const others = [...inside, ...published.map(({ internal }) => internal)].filter((port) => !seen.has(port));
  return { ...(web && { http: web }), tcp, inside: [...new Set(others)] };
}
