/** The fields of a configuration that a form shows: when machines sleep, and how much they take. Pure. */
import type { Machine, MachineConfig, ServiceConfig } from "@hibernaut/client/browser";
import {
  defaultOf,
  type Field,
  type Fields,
  lastName,
  MACHINE_FIELDS,
  SERVICE_FIELDS,
  valueAt,
  withValueAt,
} from "@hibernaut/domain/fields";

/** A field of the form. */
export interface Setting {
  /** The last name of its path. */
  name: string;
  path: string;
  /** Whether a service has it, or the machine. */
  ofService: boolean;
  field: Field;
  label: string;
  /** What holds without it. Null: the field of the form may be empty, which means the platform's default, or none. */
  without: Value;
}

/** The value of a setting. Null: empty. */
export type Value = boolean | number | string | null;
/** Values of a form, by the settings' names. */
export type Settings = Readonly<Record<string, Value>>;

/** The fields of the form, in its order. */
export const SETTINGS: readonly Setting[] = [
  ...settingsFrom(SERVICE_FIELDS, true),
  ...settingsFrom(MACHINE_FIELDS, false),
];

function settingsFrom(fields: Fields, ofService: boolean): Setting[] {
  return Object.entries(fields).flatMap(([path, field]) => {
    const { label } = field;
    const without = defaultOf(field) ?? null;
    return label === undefined ? [] : [{ name: lastName(path), path, ofService, field, label, without }];
  });
}

/** The settings of a machine: those of its first service are shown. */
export function settingsOf({ config }: Pick<Machine, "config">): Settings {
  return settingsIn(config, config.services?.[0]);
}

function settingsIn(config: MachineConfig, service: ServiceConfig | undefined): Settings {
  return Object.fromEntries(
    SETTINGS.map(({ name, path, ofService, without }) => [
      name,
      (valueAt((ofService ? service : config) ?? {}, path) as Value | undefined) ?? without,
    ]),
  );
}

/** What a form shows about machines that are changed together. */
export interface Common {
  /** Of the first machine. */
  settings: Settings;
  /** In which other machines differ from the first. */
  differing: string[];
  /** In which other services of a machine differ from its first service. */
  ofFirstService: string[];
}

/** The settings of the first machine, and what they do not say. Undefined without machines. */
export function commonSettings(machines: readonly Pick<Machine, "config">[]): Common | undefined {
  const [settings, ...others] = machines.map(settingsOf);
  if (settings === undefined) return undefined;
  const names = SETTINGS.map(({ name }) => name);
  const services = machines.map(({ config }) => (config.services ?? []).map((one) => settingsIn(config, one)));
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
export function typedNumbers(texts: Readonly<Record<string, string>>): Settings {
  const mayBeEmpty = (name: string) => SETTINGS.some((setting) => setting.name === name && setting.without === null);
  const typed = Object.entries(texts).filter(([name, text]) => text !== "" || mayBeEmpty(name));
  return Object.fromEntries(typed.map(([name, text]) => [name, text === "" ? null : Number(text)]));
}

/** The settings in which two differ: only these are sent. */
export function changesOf(before: Settings, after: Settings): Settings {
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => value !== before[name]));
}

/**
 * A configuration with these changes: in its first service, whose values are shown, and in those services that have the
 * same value. One that differs in a setting keeps its own.
 */
export function withSettings(config: MachineConfig, changes: Settings): MachineConfig {
  const shown = settingsOf({ config });
  const services = config.services?.map((service) => {
    const own = settingsIn(config, service);
    return changed(service, changes, ({ name, ofService }) => ofService && own[name] === shown[name]);
  });
  const after = changed(config, changes, ({ ofService }) => !ofService);
  return services === undefined ? after : { ...after, services };
}

function changed<T extends object>(before: T, changes: Settings, concerns: (setting: Setting) => boolean): T {
  const settings = SETTINGS.filter((setting) => setting.name in changes && concerns(setting));
  return settings.reduce((after, { name, path }) => withValueAt(after, path, changes[name] ?? undefined), before);
}
