/** `[[services.ports]]`: how a service is reached on Fly, and which part of that the proxy offers here. */
import { readResponseHeaders } from "./http-options.ts";
import type { Service } from "./model.ts";
import type { Section } from "./section.ts";

const PORTS = { minimum: 1, maximum: 65_535 } as const;
/** The ports of URLs that name none. */
const USUAL = [80, 443];

/** What the ports of a service say. */
interface Ports {
  /** Whether the proxy sends requests to the service. */
  reach: Service["reach"];
  /** Whether requests over plain HTTP are redirected. */
  forceHttps: boolean | undefined;
  responseHeaders: Service["responseHeaders"];
}

/** Reads whether the proxy sends requests to the service, and over which protocol. */
export function readPorts(service: Section): Ports {
  const protocol = service.choice("protocol", ["tcp", "http", "https"]);
  const ports = service.sections("ports").map(readPort);
  const all = ports.map(({ reach }) => reach);
  const said = {
    forceHttps: ports.some((port) => port.forceHttps) || undefined,
    // The proxy has one answer for all ports of a service.
    responseHeaders: ports.find((port) => port.responseHeaders !== undefined)?.responseHeaders,
  };
  if (ports.length > 0)
    return { reach: all.includes("web") ? "web" : all.includes("other") ? "other" : "private", ...said };
  if (protocol === "http" || protocol === "https") return { reach: "web", ...said };
  service.findings.warning(
    service.path,
    'The service has no `ports`, so the proxy sends no requests to it. Use [http_service], or add [[services.ports]] with port = 80 and handlers = ["http"].',
  );
  return { reach: "private", ...said };
}

function readPort(section: Section): Ports {
  const handlers = section.strings("handlers") ?? [];
  const port = section.integer("port", PORTS);
  const range = [section.integer("start_port", PORTS), section.integer("end_port", PORTS)];
  const forceHttps = section.boolean("force_https");
  const responseHeaders = readResponseHeaders(section);
  section.ignored(
    ["tls_options", "proxy_proto_options"],
    "Not supported: the proxy does not have these options per port.",
  );
  section.finish();
  const isHttp = handlers.some((handler) => handler === "http" || handler === "edge_http");
  if (isHttp && port !== undefined && USUAL.includes(port)) return { reach: "web", forceHttps, responseHeaders };
  const shown = port ?? range.filter((one) => one !== undefined).join("-");
  section.findings.warning(
    section.path,
    isHttp
      ? `The proxy does not listen on ${shown}: requests reach the service on the ports of the proxy.`
      : `The proxy speaks HTTP only, and port ${shown} is not HTTP: the service answers at the machine's own address.`,
  );
  return { reach: isHttp ? "other" : "private", forceHttps, responseHeaders };
}
