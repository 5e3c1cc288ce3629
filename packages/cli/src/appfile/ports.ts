/** `[[services.ports]]`: how a service is reached on Fly, and which part of that the proxy offers here. */
import type { Service } from "./model.ts";
import type { Section } from "./section.ts";

export const FORCE_HTTPS = "Not supported: the proxy does not redirect requests to HTTPS.";
const PORTS = { minimum: 1, maximum: 65_535 } as const;
/** The ports of URLs that name none. */
const USUAL = [80, 443];

/** Whether the proxy sends requests to the service. */
export function readReach(service: Section): Service["reach"] {
  const protocol = service.choice("protocol", ["tcp", "http", "https"]);
  const ports = service.sections("ports").map(readPort);
  if (ports.length > 0) return ports.includes("web") ? "web" : ports.includes("other") ? "other" : "private";
  if (protocol === "http" || protocol === "https") return "web";
  service.findings.warning(
    service.path,
    'The service has no `ports`, so the proxy sends no requests to it. Use [http_service], or add [[services.ports]] with port = 80 and handlers = ["http"].',
  );
  return "private";
}

function readPort(section: Section): Service["reach"] {
  const handlers = section.strings("handlers") ?? [];
  const port = section.integer("port", PORTS);
  const range = [section.integer("start_port", PORTS), section.integer("end_port", PORTS)];
  section.ignored("force_https", FORCE_HTTPS);
  section.ignored(
    ["http_options", "tls_options", "proxy_proto_options"],
    "Not supported: the proxy does not have these options per port.",
  );
  section.finish();
  const isHttp = handlers.some((handler) => handler === "http" || handler === "edge_http");
  if (isHttp && port !== undefined && USUAL.includes(port)) return "web";
  const shown = port ?? range.filter((one) => one !== undefined).join("-");
  section.findings.warning(
    section.path,
    isHttp
      ? `The proxy does not listen on ${shown}: requests reach the service on the ports of the proxy.`
      : `The proxy speaks HTTP only, and port ${shown} is not HTTP: the service answers at the machine's own address.`,
  );
  return isHttp ? "other" : "private";
}
