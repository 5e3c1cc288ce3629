/** `[http_service]` and `[[services]]`. */
import { IDLE_TIMEOUT_S, KEEP_WARM_S } from "@hibernaut/domain/limits";
import { isValidName, NAME_RULE } from "../names.ts";
import { readHttpChecks, readTcpChecks } from "./checks.ts";
import type { Groups } from "./groups.ts";
import { readHttpOptions } from "./http-options.ts";
import type { Check, Concurrency, Service } from "./model.ts";
import { readPorts } from "./ports.ts";
import type { Section } from "./section.ts";

/** As on Fly. */
const DEFAULT_PORT = 8080;
const PORTS = { minimum: 1, maximum: 65_535 } as const;
/** What the platform accepts. */
const MAX_LIMIT = 1_000_000;

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

/** Reads both forms. */
export function readServices(top: Section, groups: Groups): Services {
  const found = top.sections("http_service").map((section) => readService(section, groups, WEB));
  for (const section of top.sections("services")) {
    if (section.keys.length === 0) continue; // `[[services]]` alone, as some generators leave it
    if (section.raw("protocol") === "udp") section.ignoredWhole("Not supported: UDP. The service is ignored.");
    else if (found.length > 0 && !section.has("internal_port")) section.ignoredWhole(NO_PORT);
    else found.push(readService(section, groups, readPorts(section)));
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
const WEB: ReturnType<typeof readPorts> = {
  reach: "web",
  ports: [],
  forceHttps: undefined,
  h2Backend: undefined,
  responseHeaders: undefined,
};

function readService(section: Section, groups: Groups, said: ReturnType<typeof readPorts>): ReadService {
  const { reach, ports } = said;
  const options = readHttpOptions(section);
  const service: Service = {
    groups: groups.of(section),
    internalPort: section.integer("internal_port", PORTS) ?? DEFAULT_PORT,
    reach,
    ports,
    autostop: readAutostop(section),
    autostopFallback: section.choice("auto_stop_fallback", ["stop", "off"]),
    autostart: section.boolean("auto_start_machines"),
    minMachinesRunning: section.integer("min_machines_running", { minimum: 0, maximum: 1000 }),
    idleTimeout: readIdleTimeout(section),
    keepWarm: readKeepWarm(section),
    idle: section.choice("idle", ["open", "quiet"]),
    placement: section.choice("placement", ["shared", "pinned"]),
    machineHostnames: section.boolean("machine_hostnames"),
    replayFrom: readReplayFrom(section),
    forceHttps: section.boolean("force_https") ?? said.forceHttps,
    wakePage: section.boolean("wake_page"),
    h2Backend: options.h2Backend ?? said.h2Backend,
    responseHeaders: options.responseHeaders ?? said.responseHeaders,
    concurrency: readConcurrency(section),
  };
  checkWaking(section, service);
  checkPlacement(section, service);
  const checks = [...readTcpChecks(section, service), ...readHttpChecks(section, service)];
  section.ignored(["tls_options", "proxy_proto_options"], "Not supported: the proxy has no such options per service.");
  section.ignored("machine_checks", "Not supported: machines are not started to test other machines.");
  section.ignored("script_checks", "Not supported: a check connects to a port and does not run a program.");
  section.finish();
  return { section, service, checks };
}

/** `true` is the form from before suspend existed, and means stop. */
function readAutostop(section: Section): Service["autostop"] {
  const value = section.raw("auto_stop_machines");
  if (typeof value === "boolean") return value ? "stop" : "off";
  return section.choice("auto_stop_machines", ["suspend", "stop", "off"]);
}

function readIdleTimeout(section: Section): number | undefined {
  const seconds = section.seconds("idle_timeout", "s", IDLE_TIMEOUT_S.maximum);
  if (seconds === 0) return section.error("idle_timeout", "Use at least one second.");
  return seconds === undefined ? undefined : Math.ceil(seconds);
}

/** Fly has no such key, so no old file has an empty one: it is a mistake here, and so is a part of a second. */
function readKeepWarm(section: Section): number | undefined {
  const seconds = section.seconds("keep_warm", "s", KEEP_WARM_S.maximum);
  if (section.raw("keep_warm") === "" || (seconds !== undefined && !Number.isInteger(seconds)))
    return section.error("keep_warm", 'Use whole seconds, as in "30s" or "5m", or 0 to keep nothing.');
  return seconds;
}

function readReplayFrom(section: Section): string[] | undefined {
  const apps = section.strings("replay_from");
  const wrong = apps?.find((app) => !isValidName(app));
  if (wrong === undefined) return apps;
  return section.error("replay_from", `"${wrong}" is not the name of an app: it ${NAME_RULE}.`);
}

/** A pinned machine sleeps by itself, whatever the others do. */
function checkPlacement(section: Section, { placement, minMachinesRunning = 0 }: Service): void {
  if (placement === "pinned" && minMachinesRunning > 0)
    section.warning(
      "min_machines_running",
      'Keeps no machine awake: with placement = "pinned", each machine sleeps by itself. Use auto_stop_machines = "off" to keep all of them running.',
    );
}

function checkWaking(section: Section, service: Service): void {
  const { autostop = "off", autostopFallback, autostart = true, reach } = service;
  if (autostopFallback !== undefined && autostop !== "suspend")
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
    service.autostop = "off";
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
    return { type: "requests", softLimit: Number(soft) || undefined, hardLimit: Number(hard) || undefined };
  }
  const [first, ...others] = section.sections("concurrency");
  for (const other of others) other.ignoredWhole("A service has one concurrency table: the first one counts.");
  return first && readLimits(first);
}

function readLimits(section: Section): Concurrency {
  const range = { minimum: 0, maximum: MAX_LIMIT };
  const limits: Concurrency = {
    // As on Fly, a table without a type counts connections.
    type: section.choice("type", ["requests", "connections"]) ?? "connections",
    // As on Fly, 0 means no limit.
    softLimit: section.integer("soft_limit", range) || undefined,
    hardLimit: section.integer("hard_limit", range) || undefined,
  };
  const { softLimit, hardLimit } = limits;
  if (softLimit !== undefined && hardLimit !== undefined && softLimit > hardLimit)
    section.error(
      "soft_limit",
      `Exceeds \`hard_limit\` (${hardLimit}), so no machine would ever reach it. Use ${hardLimit} or less.`,
    );
  section.finish();
  return limits;
}

/** Warns of a second port: the proxy sends requests to one port of a machine. */
function warnOfSecond(found: readonly ReadService[]): void {
  const inOrder = found.filter(({ service }) => service.reach === "web" || service.reach === "other");
  inOrder.sort((a, b) => byReach(a.service, b.service));
  for (const [index, { section, service }] of inOrder.entries()) {
    const sharesGroup = (other: ReadService) => other.service.groups.some((group) => service.groups.includes(group));
    const port = inOrder.slice(0, index).find(sharesGroup)?.service.internalPort;
    // Requests may reach this one by the machine's hostname with the port.
    if (service.machineHostnames === true) continue;
    if (port !== undefined && port !== service.internalPort)
      section.findings.warning(
        section.path,
        `The proxy sends requests to one port of a machine, here ${port}. Port ${service.internalPort} answers only at the machine's own address.`,
      );
  }
}

/** Warns of machines that would be kept warm while they sleep, and are never suspended when they are idle. */
function warnOfKeepWarm(found: readonly ReadService[]): void {
  for (const { section, service } of found) {
    if ((service.keepWarm ?? 0) === 0) continue;
    const sharesGroup = (other: Service) => other.groups.some((group) => service.groups.includes(group));
    if (found.some((other) => other.service.autostop === "suspend" && sharesGroup(other.service))) continue;
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
