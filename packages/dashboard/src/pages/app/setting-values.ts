/** The settings that decide when machines sleep, and how much they take. Pure. */
import type { Machine, MachineConfig, ServiceConfig } from "@hibernaut/client/browser";

/** Values of a form. Empty: the platform's default, or none. */
export interface Settings {
  autostop: "suspend" | "stop" | "off";
  autostart: boolean;
  /** Seconds. */
  idle_timeout: number;
  /** Seconds. */
  keep_warm: number | null;
  min_machines_running: number;
  soft_limit: number;
  hard_limit: number | null;
  memory_mb: number;
  cpus: number;
}

/** A setting's name. */
export type SettingName = keyof Settings;

/** Settings that are numbers. */
export type NumberName = { [Name in SettingName]: Settings[Name] extends number | null ? Name : never }[SettingName];

/** Settings whose field may be empty: the platform's default, or none. */
export const MAY_BE_EMPTY: ReadonlySet<NumberName> = new Set(["keep_warm", "hard_limit"]);

/** What the platform assumes where a configuration says nothing. */
const DEFAULTS: Settings = {
  autostop: "off",
  autostart: true,
  idle_timeout: 300,
  keep_warm: null,
  min_machines_running: 0,
  soft_limit: 20,
  hard_limit: null,
  memory_mb: 256,
  cpus: 1,
};

/** The settings of a machine: those of its first service are shown. */
export function settingsOf({ config: { services: [first] = [], guest } }: Pick<Machine, "config">): Settings {
  return settingsIn(first, guest);
}

function settingsIn(first: ServiceConfig | undefined, guest: MachineConfig["guest"]): Settings {
  return {
    autostop: first?.autostop ?? DEFAULTS.autostop,
    autostart: first?.autostart ?? DEFAULTS.autostart,
    idle_timeout: first?.idle_timeout ?? DEFAULTS.idle_timeout,
    keep_warm: first?.keep_warm ?? DEFAULTS.keep_warm,
    min_machines_running: first?.min_machines_running ?? DEFAULTS.min_machines_running,
    soft_limit: first?.concurrency?.soft_limit ?? DEFAULTS.soft_limit,
    hard_limit: first?.concurrency?.hard_limit ?? DEFAULTS.hard_limit,
    memory_mb: guest?.memory_mb ?? DEFAULTS.memory_mb,
    cpus: guest?.cpus ?? DEFAULTS.cpus,
  };
}

/** What a form shows about machines that are changed together. */
export interface Common {
  /** Of the first machine. */
  settings: Settings;
  /** In which other machines differ from the first. */
  differing: SettingName[];
  /** In which other services of a machine differ from its first service. */
  ofFirstService: SettingName[];
}

/** The settings of the first machine, and what they do not say. Undefined without machines. */
export function commonSettings(machines: readonly Pick<Machine, "config">[]): Common | undefined {
  const [settings, ...others] = machines.map(settingsOf);
  if (settings === undefined) return undefined;
  const names = Object.keys(settings) as SettingName[];
  const services = machines.map(({ config }) => (config.services ?? []).map((one) => settingsIn(one, config.guest)));
  return {
    settings,
    differing: names.filter((name) => others.some((other) => other[name] !== settings[name])),
    ofFirstService: names.filter((name) =>
      services.some(([first, ...rest]) => rest.some((service) => service[name] !== first?.[name])),
    ),
  };
}

/**
 * The numbers that were typed. An empty field that needs a value says nothing: the browser refuses it when the form is
 * sent.
 */
export function typedNumbers(texts: Partial<Record<NumberName, string>>): Partial<Settings> {
  const typed = (Object.entries(texts) as [NumberName, string][]).filter(
    ([name, text]) => text !== "" || MAY_BE_EMPTY.has(name),
  );
  return Object.fromEntries(typed.map(([name, text]) => [name, text === "" ? null : Number(text)]));
}

/** The settings in which two differ: only these are sent. */
export function changesOf(before: Settings, after: Settings): Partial<Settings> {
  const names = (Object.keys(before) as SettingName[]).filter((name) => before[name] !== after[name]);
  return Object.fromEntries(names.map((name) => [name, after[name]]));
}

/**
 * A configuration with these changes: in its first service, whose values are shown, and in those services that have the
 * same value. One that differs in a setting keeps its own.
 */
export function withSettings(config: MachineConfig, changes: Partial<Settings>): MachineConfig {
  const { memory_mb: memory, cpus, ...ofServices } = changes;
  const guest = { ...config.guest, ...defined({ memory_mb: memory, cpus }) };
  const shown = settingsOf({ config });
  const services = config.services?.map((service) => {
    const own = settingsIn(service, config.guest);
    const same = Object.entries(ofServices).filter(([name]) => own[name as SettingName] === shown[name as SettingName]);
    return withServiceSettings(service, Object.fromEntries(same));
  });
  return {
    ...config,
    ...(Object.keys(guest).length > 0 && { guest }),
    ...(services !== undefined && { services }),
  };
}

function withServiceSettings(
  service: ServiceConfig,
  { soft_limit: soft, hard_limit: hard, keep_warm: keepWarm, ...plain }: Omit<Partial<Settings>, "memory_mb" | "cpus">,
): ServiceConfig {
  const { keep_warm: _kept, ...rest } = service;
  const base = keepWarm === null ? rest : { ...service, ...defined({ keep_warm: keepWarm }) };
  const { hard_limit: _limit, ...softOnly } = service.concurrency ?? {};
  const concurrency = {
    ...(hard === null ? softOnly : service.concurrency),
    ...defined({ soft_limit: soft, hard_limit: hard ?? undefined }),
  };
  return { ...base, ...plain, ...(Object.keys(concurrency).length > 0 && { concurrency }) };
}

/** Without what is undefined. */
function defined<T extends object>(parts: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined)) as never;
}
