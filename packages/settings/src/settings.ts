/**
 * Every setting of the platform, read from `settings.json` in the configuration directory and from the environment,
 * which overrides it. `settings/` holds the schema of each with its default, unit and reason; docs/settings.md is
 * generated from it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Static, type TSchema, Type } from "typebox";
import { BACKUP_SETTINGS } from "./backups.ts";
import { CERTIFICATE_SETTINGS } from "./certificates.ts";
import { CLUSTER_SETTINGS } from "./cluster.ts";
import { infoOf } from "./forms.ts";
import { IMAGE_SETTINGS } from "./images.ts";
import { LIMIT_SETTINGS } from "./limits.ts";
import { MACHINE_SETTINGS } from "./machines.ts";
import { parseSetting, unacceptable } from "./parse.ts";
import { configFolder } from "./places.ts";
import { PLATFORM_SETTINGS } from "./platform.ts";
import { PROXY_SETTINGS } from "./proxy.ts";
import { SANDBOX_SETTINGS } from "./sandboxes.ts";
import { TRACE_SETTINGS } from "./traces.ts";
import { USAGE_SETTINGS } from "./usage.ts";
import { WEBHOOK_SETTINGS } from "./webhooks.ts";

export type { Listen } from "./forms.ts";
export { configFolder } from "./places.ts";

/** The settings by topic, as docs/settings.md shows them. */
export const SETTING_GROUPS = {
  Platform: PLATFORM_SETTINGS,
  Proxy: PROXY_SETTINGS,
  Certificates: CERTIFICATE_SETTINGS,
  Machines: MACHINE_SETTINGS,
  Sandboxes: SANDBOX_SETTINGS,
  Images: IMAGE_SETTINGS,
  Usage: USAGE_SETTINGS,
  Traces: TRACE_SETTINGS,
  Webhooks: WEBHOOK_SETTINGS,
  Backups: BACKUP_SETTINGS,
  Cluster: CLUSTER_SETTINGS,
  Limits: LIMIT_SETTINGS,
};

const SettingsSchema = Type.Object({
  ...PLATFORM_SETTINGS,
  ...PROXY_SETTINGS,
  ...CERTIFICATE_SETTINGS,
  ...MACHINE_SETTINGS,
  ...SANDBOX_SETTINGS,
  ...IMAGE_SETTINGS,
  ...USAGE_SETTINGS,
  ...TRACE_SETTINGS,
  ...WEBHOOK_SETTINGS,
  ...BACKUP_SETTINGS,
  ...CLUSTER_SETTINGS,
  ...LIMIT_SETTINGS,
});

export type Settings = Static<typeof SettingsSchema>;

/** Longest path of a Unix socket that the kernel accepts, in bytes. */
export const MAX_SOCKET_PATH = 107;
/** The longest of ours, below the data directory. */
export const LONGEST_SOCKET = "/run/00000000000000/capture.sock";

/** The names of all settings, for documents and `doctor`. */
export const SETTING_NAMES: readonly string[] = Object.values(SettingsSchema.properties).map(
  (schema) => infoOf(schema).env,
);

/** Names that settings had before, which keep working. */
export const FORMER_SETTING_NAMES: readonly string[] = Object.values(SettingsSchema.properties).flatMap(
  (schema) => infoOf(schema).formerly ?? [],
);

/**
 * Reads the settings. An empty value counts as none; the environment overrides the file, and the name of a setting its
 * former name. Throws `invalid_argument`, which names the setting and says what it accepts.
 *
 * @example
 * const settings = readSettings(process.env);
 */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const { values: file } = readSettingsFile(environment);
  const given = (schema: TSchema) => {
    const { env, formerly } = infoOf(schema);
    const names = formerly === undefined ? [env] : [env, formerly];
    for (const source of [environment, file]) {
      const name = names.find((each) => (source[each] ?? "") !== "");
      if (name !== undefined) return { value: parseSetting(schema, String(source[name]), name) };
    }
    return undefined;
  };
  const { slowFactor } = MACHINE_SETTINGS;
  const factor = Number(given(slowFactor)?.value ?? (slowFactor as { default?: unknown }).default);
  const entries = Object.entries(SettingsSchema.properties).map(([key, schema]) => {
    const found = given(schema);
    if (found !== undefined) return [key, found.value];
    const { fallback, scaled } = infoOf(schema);
    if (scaled === true) return [key, scaledDefault(schema, factor)];
    return [key, fallback === undefined ? (schema as { default?: unknown }).default : fallback(environment)];
  });
  return Object.fromEntries(entries) as Settings;
}

/** A time limit on a host that is slower than usual. */
function scaledDefault(schema: TSchema, factor: number): number {
  const { default: usual, maximum } = schema as TSchema & { default: number; maximum: number };
  return Math.min(usual * factor, maximum);
}

/** The file of settings and what is in it; nothing when there is no such file. */
export function readSettingsFile(environment: NodeJS.ProcessEnv): { file: string; values: Record<string, unknown> } {
  const file = join(configFolder(environment), "settings.json");
  return { file, values: readFile(file) };
}

function readFile(file: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw unacceptable(file, "a readable file");
  }
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
  } catch {
    // reported below, in the same words as any other wrong content
  }
  throw unacceptable(file, "a JSON object of settings");
}
