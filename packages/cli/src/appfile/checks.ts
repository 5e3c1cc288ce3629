/** Health checks: `[checks.<name>]` and those within a service. */
import { CHECK_MS } from "@hibernaut/domain/check-times";
import type { Groups } from "./groups.ts";
import type { Check, Service } from "./model.ts";
import type { Section } from "./section.ts";

/** No time of a check is longer, in seconds. */
const MAX_TIME_S = CHECK_MS.maximum / 1000;

const PORTS = { minimum: 1, maximum: 65_535 } as const;

const UNUSED = "Not supported: checks do not have this option.";

type Asked = Omit<Check, "name" | "groups" | "type" | "port">;

/** `[checks.<name>]`, and the old `[[checks]]` with a `name`. The default port is that of the first web service. */
export function readChecks(top: Section, groups: Groups, services: readonly Service[]): Check[] {
  const isList = Array.isArray(top.raw("checks"));
  const sections = isList ? top.sections("checks").map(withOwnName) : namedSections(top.section("checks"));
  return sections.flatMap(([name, section]) => readCheck(name, section, groups, services));
}

function withOwnName(section: Section): [string, Section] {
  return [section.string("name") ?? `check-${String(section.path.at(-1))}`, section];
}

function namedSections(parent: Section | undefined): [string, Section][] {
  return (parent?.keys ?? []).flatMap((name) => {
    const section = parent?.section(name);
    return section ? [[name, section] as [string, Section]] : [];
  });
}

function readCheck(name: string, section: Section, groups: Groups, services: readonly Service[]): Check[] {
  if (section.raw("type") === "script") {
    section.ignoredWhole("Not supported: a check connects to a port and does not run a program.");
    return [];
  }
  // A path implies http where the type is missing.
  const type = section.choice("type", ["http", "tcp"]) ?? (section.has("path") ? "http" : "tcp");
  const inGroups = groups.of(section);
  const web = services.find((service) => service.groups.some((group) => inGroups.includes(group)));
  const port = section.integer("port", PORTS) ?? web?.config.internal_port;
  section.ignored(["kind", "script", "command", "restart_limit"], UNUSED);
  const asked = readAsked(section);
  section.finish();
  if (port === undefined) {
    section.findings.error(
      section.path,
      "The check has no `port`, and there is no service to take one from. Add `port`.",
    );
    return [];
  }
  return [{ name, groups: inGroups, type, port, ...asked }];
}

/** `[[http_service.checks]]` and `[[services.http_checks]]`. */
export function readHttpChecks(service: Section, about: Service): Check[] {
  return [...service.sections("checks"), ...service.sections("http_checks")].map((section, index) =>
    readServiceCheck(section, about, "http", index),
  );
}

/** `[[services.tcp_checks]]`. */
export function readTcpChecks(service: Section, about: Service): Check[] {
  return service.sections("tcp_checks").map((section, index) => readServiceCheck(section, about, "tcp", index));
}

function readServiceCheck(section: Section, service: Service, type: Check["type"], index: number): Check {
  const { groups } = service;
  const { internal_port: port } = service.config;
  section.ignored("restart_limit", UNUSED);
  const asked = readAsked(section);
  section.finish();
  return { name: `${type}-${port}${index === 0 ? "" : `-${index + 1}`}`, groups, type, port, ...asked };
}

/** The options of all checks. Numbers without a unit are milliseconds, as on Fly. */
function readAsked(section: Section): Asked {
  if (section.choice("protocol", ["http", "https"]) === "https")
    section.warning("protocol", "Not supported: checks use plain HTTP.");
  section.ignored(["tls_skip_verify", "tls_server_name"], "No effect: checks use plain HTTP.");
  return {
    interval: checkTime(section, "interval"),
    timeout: checkTime(section, "timeout"),
    gracePeriod: section.seconds("grace_period", "ms", MAX_TIME_S),
    method: section.string("method")?.toUpperCase(),
    path: absolute(section.string("path")),
    headers: readHeaders(section),
  };
}

/** The interval or time limit of a check, in seconds. Fly, too, refuses a text without a unit. */
function checkTime(section: Section, key: "interval" | "timeout"): number | undefined {
  const value = section.raw(key);
  const [digits] = typeof value === "string" ? (/^\s*\d+(?:\.\d+)?\s*$/.exec(value) ?? []) : [];
  if (digits !== undefined) return section.error(key, `Add a unit, as in "${digits.trim()}s" or "${digits.trim()}ms".`);
  const seconds = section.seconds(key, "ms", MAX_TIME_S);
  if (seconds === undefined || seconds * 1000 >= CHECK_MS.minimum) return seconds;
  // A 5 without a unit is meant as seconds.
  const meant = typeof value === "number" && value > 0 ? value : 5;
  return section.error(
    key,
    `This is ${seconds * 1000} milliseconds; the minimum is ${CHECK_MS.minimum}. Write "${meant}s" for seconds.`,
  );
}

function absolute(path: string | undefined): string | undefined {
  return path === undefined || path === "" || path.startsWith("/") ? path || undefined : `/${path}`;
}

/** A table of names and values, or the old list of `{ name, value }`. */
function readHeaders(section: Section): Record<string, string> {
  if (Array.isArray(section.raw("headers"))) return Object.fromEntries(section.sections("headers").map(oldHeader));
  const table = section.section("headers");
  return Object.fromEntries((table?.keys ?? []).map((name) => [name, String(table?.raw(name))]));
}

function oldHeader(section: Section): [string, string] {
  const header: [string, string] = [section.string("name") ?? "", section.string("value") ?? ""];
  section.finish();
  return header;
}
