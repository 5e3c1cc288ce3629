/** `[http_service]` and `[[services]]`. */
import type { ServiceConfig } from "@hibernaut/client";
import { SERVICE_FIELDS } from "@hibernaut/domain/fields";
import { isValidName, NAME_RULE } from "../names.ts";
import { readHttpChecks, readTcpChecks } from "./checks.ts";
import { readFields } from "./fields.ts";
import type { Groups } from "./groups.ts";
import { readHttpOptions } from "./http-options.ts";
import type { Check, Service } from "./model.ts";
import { type Reached, readPorts } from "./ports.ts";
import type { Section } from "./section.ts";

/** Where an app listens of whose port nothing says anything. As on Fly. */
export const DEFAULT_PORT = 8080;
const PORTS = { minimum: 1, maximum: 65_535 } as const;
/** What the platform accepts. */
const MAX_LIMIT = 1_000_000;

type Concurrency = NonNullable<ServiceConfig["concurrency"]>;

/** All services and the checks within them. */
interface Services {
  services: Service[];
  checks: Check[];
}

/** A service with its table and the checks in it. */
interface ReadService {
  section: Section;
  service: Service;
  checks: Check[];
}

/** Reads both forms. A service that names no port has `port`. */
export function readServices(top: Section, groups: Groups, port: number): Services {
  const found = top.sections("http_service").map((section) => readService(section, { groups, port }, WEB));
  for (const section of top.sections("services")) {
    if (section.keys.length === 0) continue; // `[[services]]` alone, as some generators leave it
    if (section.raw("protocol") === "udp") section.ignoredWhole("Not supported: UDP. The service is ignored.");
    else if (found.length > 0 && !section.has("internal_port")) section.ignoredWhole(NO_PORT);
    else found.push(readService(section, { groups, port }, readPorts(section)));
  }
  warnOfSecond(found);
  warnOfRules(found);
  warnOfKeepWarm(found);
  return { services: found.map(({ service }) => service), checks: found.flatMap(({ checks }) => checks) };
}

/** Often left over in a file that was moved to [http_service]. A port that nothing listens on would delay every start. */
const NO_PORT =
  "The service has no `internal_port` and comes after another service, so it is ignored. Add the port, or remove the service.";

/** Every port of `[http_service]` is HTTP. */
const WEB: Reached = { reach: "web", ports: [], options: {} };

function readService(
  section: Section,
  { groups, port }: { groups: Groups; port: number },
  { reach, ports, options, ...said }: Reached,
): ReadService {
  const httpOptions = { ...options, ...readHttpOptions(section) };
  const replayFrom = readReplayFrom(section);
  const concurrency = readConcurrency(section);
  const before: ServiceConfig = {
    protocol: reach === "private" || reach === "tcp" ? "tcp" : "http",
    internal_port: section.integer("internal_port", PORTS) ?? port,
    ...said,
    ...(ports.length > 0 && { ports }),
    ...(replayFrom && { replay_from: replayFrom }),
    ...(Object.keys(httpOptions).length > 0 && { http_options: httpOptions }),
    ...(concurrency && { concurrency }),
  };
  const config = readFields(section, SERVICE_FIELDS, before);
  const service: Service = { groups: groups.of(section), reach, portNamed: section.has("internal_port"), config };
  checkWaking(section, service);
  checkPlacement(section, service);
  const checks = [...readTcpChecks(section, service), ...readHttpChecks(section, service)];
  section.ignored(["tls_options", "proxy_proto_options"], "Not supported: the proxy has no such options per service.");
  section.ignored("machine_checks", "Not supported: machines are not started to test other machines.");
  section.ignored("script_checks", "Not supported: a check connects to a port and does not run a program.");
  section.finish();
  return { section, service, checks };
}

function readReplayFrom(section: Section): string[] | undefined {
  const apps = section.strings("replay_from");
  const wrong = apps?.find((app) => !isValidName(app));
  if (wrong === undefined) return apps;
  return section.error("replay_from", `"${wrong}" is not the name of an app: it ${NAME_RULE}.`);
}

/** A pinned machine sleeps by itself, whatever the others do. */
function checkPlacement(section: Section, { config }: Service): void {
  if (config.placement === "pinned" && (config.min_machines_running ?? 0) > 0)
    section.warning(
      "min_machines_running",
      'Keeps no machine awake: with placement = "pinned", each machine sleeps by itself. Use auto_stop_machines = "off" to keep all of them running.',
    );
}

function checkWaking(section: Section, { reach, config }: Service): void {
  const { autostop = "off", autostop_fallback: fallback, autostart = true } = config;
  if (fallback !== undefined && autostop !== "suspend")
    section.warning(
      "auto_stop_fallback",
      'No effect: it says what a machine does that cannot be suspended, and needs auto_stop_machines = "suspend".',
    );
  if (autostop === "off") return;
  if (reach === "private") {
    section.warning(
      "auto_stop_machines",
      'Read as "off": the proxy sees no requests to this service, so nothing would wake the machine.',
    );
    config.autostop = "off";
  } else if (!autostart) {
    section.warning(
      "auto_start_machines",
      "Requests do not wake a machine that sleeps: only `hibernaut machine start` and the API do.",
    );
  }
}

/** A table, an array of one table, or the old text `"soft,hard"`. */
function readConcurrency(section: Section): Concurrency | undefined {
  const raw = section.raw("concurrency");
  if (typeof raw === "string") {
    const [, soft, hard] = /^\s*(\d{1,6})\s*,\s*(\d{1,6})\s*$/.exec(raw) ?? [];
    if (soft === undefined)
      return section.error("concurrency", 'Use a table, as in { type = "requests", soft_limit = 20 }.');
    return limits("requests", Number(soft), Number(hard));
  }
  const [first, ...others] = section.sections("concurrency");
  for (const other of others) other.ignoredWhole("A service has one concurrency table: the first one counts.");
  return first && readLimits(first);
}

function readLimits(section: Section): Concurrency {
  const range = { minimum: 0, maximum: MAX_LIMIT };
  // As on Fly, a table without a type counts connections.
  const type = section.choice("type", ["requests", "connections"]) ?? "connections";
  const soft = section.integer("soft_limit", range) ?? 0;
  const hard = section.integer("hard_limit", range) ?? 0;
  if (hard > 0 && soft > hard)
    section.error(
      "soft_limit",
      `Exceeds \`hard_limit\` (${hard}), so no machine would ever reach it. Use ${hard} or less.`,
    );
  section.finish();
  return limits(type, soft, hard);
}

/** As on Fly, 0 means no limit. */
function limits(type: Concurrency["type"], soft: number, hard: number): Concurrency {
  return { ...(type && { type }), ...(soft > 0 && { soft_limit: soft }), ...(hard > 0 && { hard_limit: hard }) };
}

/** Warns of a second port: the proxy sends requests to one port of a machine. */
function warnOfSecond(found: readonly ReadService[]): void {
  const inOrder = found.filter(({ service }) => service.reach === "web" || service.reach === "other");
  inOrder.sort((a, b) => byReach(a.service, b.service));
  for (const [index, { section, service }] of inOrder.entries()) {
    const sharesGroup = (other: ReadService) => other.service.groups.some((group) => service.groups.includes(group));
    const port = inOrder.slice(0, index).find(sharesGroup)?.service.config.internal_port;
    // Requests may reach this one by the machine's hostname with the port.
    if (service.config.machine_hostnames === true) continue;
    if (port !== undefined && port !== service.config.internal_port)
      section.findings.warning(
        section.path,
        `The proxy sends requests to one port of a machine, here ${port}. Port ${service.config.internal_port} answers only at the machine's own address.`,
      );
  }
}

/** Warns of machines that would be kept warm while they sleep, and are never suspended when they are idle. */
function warnOfKeepWarm(found: readonly ReadService[]): void {
  for (const { section, service } of found) {
    if ((service.config.keep_warm ?? 0) === 0) continue;
    const sharesGroup = (other: Service) => other.groups.some((group) => service.groups.includes(group));
    if (found.some((other) => other.service.config.autostop === "suspend" && sharesGroup(other.service))) continue;
    section.warning(
      "keep_warm",
      'No effect on an idle machine, which is not suspended: only `hibernaut machine suspend` then keeps one warm. Set auto_stop_machines = "suspend".',
    );
  }
}

/** What a machine does by the rules of its first service. */
const RULES = ["auto_stop_machines", "auto_stop_fallback", "auto_start_machines", "idle_timeout", "keep_warm"];

/** Warns of rules for a TCP service of a machine that sleeps by those of its HTTP service. */
function warnOfRules(found: readonly ReadService[]): void {
  const web = found.filter(({ service }) => service.reach === "web" || service.reach === "other");
  for (const { section, service } of found) {
    const first = web.find((other) => other.service.groups.some((group) => service.groups.includes(group)));
    if (service.reach !== "tcp" || first === undefined) continue;
    for (const key of RULES.filter((name) => section.has(name)))
      section.warning(key, "No effect: a machine with an HTTP service sleeps and wakes by the keys of that service.");
  }
}

/** Orders the services of a machine: the proxy serves the first one. */
export function byReach(a: Service, b: Service): number {
  const order = ["web", "other", "tcp", "private"];
  return order.indexOf(a.reach) - order.indexOf(b.reach);
}
