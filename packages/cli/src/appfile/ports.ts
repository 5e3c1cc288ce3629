/** `[[services.ports]]`: how a service is reached on Fly, and which part of that the proxy offers here. */
import type { ServiceConfig } from "@hibernaut/client";
import {
  handlersRefusal,
  PROXY_PROTOCOL_VERSIONS,
  TCP_HANDLERS,
  type TcpHandler,
  tlsHandlerOf,
} from "@hibernaut/domain/tcp-handlers";
import { type HttpOptions, readHttpOptions } from "./http-options.ts";
import type { Service } from "./model.ts";
import type { Section } from "./section.ts";

const PORTS = { minimum: 1, maximum: 65_535 } as const;
/** The ports of URLs that name none. */
const USUAL = [80, 443];

/** How clients reach a service through the proxy, and what else its ports say. */
export type Reached = Pick<Service, "reach"> &
  Pick<ServiceConfig, "force_https"> & { options: HttpOptions; ports: Port[] };
type Port = NonNullable<ServiceConfig["ports"]>[number];

/** Reads whether the proxy sends requests or connections to the service, and how it answers. */
export function readPorts(service: Section): Reached {
  const protocol = service.choice("protocol", ["tcp", "http", "https"]);
  const read = service.sections("ports").map((section) => readPort(section, protocol));
  // The proxy has one answer for all ports of a service.
  const response = read.find(({ options }) => options.response !== undefined)?.options.response;
  const said = {
    ...(read.some((port) => port.force_https) && { force_https: true }),
    options: {
      ...(read.some(({ options }) => options.h2_backend) && { h2_backend: true }),
      ...(response && { response }),
    },
  };
  if (read.length > 0) {
    const ports = read.flatMap(({ ports: own }) => own);
    const reach = (["web", "other", "tcp"] as const).find((one) => read.some((port) => port.reach === one));
    if (reach !== "tcp" && ports.length > 0)
      service.findings.warning(
        service.path,
        "The service has HTTP and TCP ports: the proxy sends it HTTP requests. Make a second [[services]] of the others.",
      );
    return { reach: reach ?? "private", ports: reach === "tcp" ? ports : [], ...said };
  }
  if (protocol === "http" || protocol === "https") return { reach: "web", ports: [], ...said };
  service.findings.warning(
    service.path,
    'The service has no `ports`, so the proxy sends no requests to it. Use [http_service], or add [[services.ports]] with port = 80 and handlers = ["http"].',
  );
  return { reach: "private", ports: [], ...said };
}

function readPort(section: Section, protocol: string | undefined): Reached {
  const handlers = section.strings("handlers") ?? [];
  const port = section.integer("port", PORTS);
  const range = [section.integer("start_port", PORTS), section.integer("end_port", PORTS)];
  const forceHttps = section.boolean("force_https");
  const options = readHttpOptions(section);
  const version = readProxyProtocol(section);
  section.ignored("tls_options", "Not supported: the proxy does not have these options per port.");
  section.finish();
  const isHttp = handlers.some((handler) => handler === "http" || handler === "edge_http");
  const said = { ...(forceHttps && { force_https: true }), options };
  if (isHttp && port !== undefined && USUAL.includes(port)) return { reach: "web", ports: [], ...said };
  if (protocol === "tcp" && port !== undefined && areForTcp(handlers, port)) {
    const reason = handlersRefusal(handlers, section.has("proxy_proto_options"));
    if (reason !== undefined) section.error("handlers", reason);
    const ways = { ...(handlers.length > 0 && { handlers }), ...(version && { proxy_proto_options: { version } }) };
    return { reach: "tcp", ports: [{ port, ...ways }], ...said };
  }
  const shown = port ?? range.filter((one) => one !== undefined).join("-");
  section.findings.warning(section.path, portWarning({ isHttp, handlers, shown, protocol }));
  return { reach: isHttp ? "other" : "private", ports: [], ...said };
}

/** On the usual ports, TLS is for HTTPS, which the proxy serves there. */
function areForTcp(handlers: readonly string[], port: number): handlers is TcpHandler[] {
  const known: readonly string[] = TCP_HANDLERS;
  if (!handlers.every((handler) => known.includes(handler))) return false;
  return !USUAL.includes(port) || tlsHandlerOf(handlers as TcpHandler[]) === undefined;
}

function readProxyProtocol(section: Section) {
  const [options] = section.sections("proxy_proto_options");
  const version = options?.choice("version", PROXY_PROTOCOL_VERSIONS);
  options?.finish();
  return version;
}

interface Refused {
  isHttp: boolean;
  handlers: readonly string[];
  shown: string | number;
  protocol: string | undefined;
}

function portWarning({ isHttp, handlers, shown, protocol }: Refused): string {
  if (isHttp) return `The proxy does not listen on ${shown}: requests reach the service on the ports of the proxy.`;
  const elsewhere = `port ${shown} is not opened: the service answers at the machine's own address.`;
  if (protocol !== "tcp") return `A TCP port needs \`protocol = "tcp"\`, and ${elsewhere}`;
  if (handlers.length > 0) return `The proxy has no handler ${handlers.join(", ")} for TCP ports, and ${elsewhere}`;
  return `The proxy has no ranges of ports, and ${elsewhere}`;
}
