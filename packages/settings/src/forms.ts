/** The forms that settings come in: each is a schema of the value, and says how people write it. */
import { type TSchema, Type } from "typebox";

/** An address to listen at; port 0 takes any free port. */
export interface Listen {
  host: string;
  port: number;
}

/** Units that the platform counts a value in. */
export type Unit = "ms" | "s" | "h" | "MB";

/** What a setting says about itself, in addition to the schema of its value. */
export interface SettingInfo {
  /** The environment variable, and the key in `settings.json`. */
  env: string;
  /** The name before version 0.2, which keeps working. There, a plain number counts the platform's own unit. */
  formerly?: string;
  /** How its text is read. */
  form: "duration" | "size" | "integer" | "choice" | "list" | "listen" | "path" | "text";
  /** What it accepts: ends the sentence "NAME must be ...". */
  accepts: string;
  /** What it is for and why its default is what it is. Markdown, with links relative to docs/. */
  description: string;
  /** The default as people write it. */
  defaultText: string;
  /** The default, where it depends on the environment; otherwise `default` of the schema. */
  fallback?(environment: NodeJS.ProcessEnv): unknown;
  /** What the value counts. */
  unit?: Unit;
  /** Whether 0 is valid, too, where it is less than the minimum. */
  orZero?: boolean;
  /** Whether `HIBERNAUT_SLOW_FACTOR` multiplies the default, up to the most that the setting accepts. */
  scaled?: boolean;
}

/** Everything that the author of a setting writes; the form adds the rest. */
type Given<T> = Pick<SettingInfo, "description" | "formerly" | "scaled"> & { default: T };

export const MS_PER: Record<Exclude<Unit, "MB">, number> = { ms: 1, s: 1000, h: 3_600_000 };

interface DurationGiven {
  min: number;
  max: number;
  unit?: Exclude<Unit, "MB">;
  orZero?: boolean;
}

/** A duration, kept as a whole number of `unit`. A plain number counts seconds. `orZero`: 0 is less than `min`, and valid. */
export function duration(
  env: string,
  { min, max, unit = "ms", orZero = false, ...given }: Given<number> & DurationGiven,
) {
  const [from, to] = [durationWords(min * MS_PER[unit]), durationWords(max * MS_PER[unit])];
  const step = unit === "ms" ? "" : `, in whole ${unit === "s" ? "seconds" : "hours"}`;
  const examples = orZero ? "5m, 30m or 1h" : EXAMPLES[unit];
  return Type.Integer({
    ...given,
    ...info(env, "duration", `${orZero ? "0 or " : ""}a duration from ${from} to ${to}${step}, such as ${examples}`),
    orZero,
    defaultText: durationWords(given.default * MS_PER[unit]),
    unit,
    minimum: min,
    maximum: max,
  });
}

const EXAMPLES = { ms: "500ms, 30s or 1m30s", s: "30s, 5m or 1h", h: "12h or 48h" } as const;

type Computed = Omit<Given<never>, "default"> & Required<Pick<SettingInfo, "defaultText" | "fallback">>;
type SizeGiven = { min: number; max: number } & (Given<number> | Computed);

/** A size in whole megabytes of 1024 KB. A plain number counts megabytes. */
export function size(env: string, { min, max, ...given }: SizeGiven) {
  return Type.Integer({
    ...info(
      env,
      "size",
      `a size from ${sizeWords(min)} to ${sizeWords(max)}, in whole megabytes, such as 512mb or 2gb`,
    ),
    ...("default" in given && { defaultText: sizeWords(given.default) }),
    ...given,
    unit: "MB",
    minimum: min,
    maximum: max,
  });
}

/** A whole number without a unit. */
export function integer(env: string, { min, max, ...given }: Given<number> & { min: number; max: number }) {
  return Type.Integer({
    ...given,
    ...info(env, "integer", `a whole number from ${min} to ${max}`),
    defaultText: String(given.default),
    minimum: min,
    maximum: max,
  });
}

/** One of a few words; the first is not necessarily the default. */
export function choice<const T extends string>(env: string, values: readonly T[], given: Given<NoInfer<T>>) {
  return Type.Unsafe<T>({
    type: "string",
    enum: values,
    ...given,
    ...info(env, "choice", `one of ${values.join(", ")}`),
    defaultText: given.default,
  });
}

const BYTE = "(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)";

/** An item of a list: an address or network, of IPv4 or IPv6. */
export const NETWORK = new RegExp(
  `^(?:${BYTE}(?:\\.${BYTE}){3}(?:/(?:3[0-2]|[12]?\\d))?|[0-9a-fA-F:]*:[0-9a-fA-F:.]*(?:/(?:12[0-8]|1[01]\\d|\\d{1,2}))?)$`,
);

/** Items separated by commas; blanks around the commas do not matter. */
export function list(env: string, { item, of, ...given }: Given<string[]> & { item: RegExp; of: string }) {
  return Type.Array(Type.String({ pattern: item.source }), {
    ...given,
    ...info(env, "list", `${of}, separated by commas`),
    defaultText: given.default.join(",") || "none",
  });
}

const ListenSchema = Type.Object({ host: Type.String(), port: Type.Integer({ minimum: 0, maximum: 65_535 }) });
const LISTEN = "host:port, such as 127.0.0.1:8080 or [::1]:8080; port 0 takes any free port";

/** An address to listen at. */
export function listen(env: string, given: Given<Listen>) {
  const defaultText = `${given.default.host}:${given.default.port}`;
  return Type.Unsafe<Listen>({ ...ListenSchema, ...given, ...info(env, "listen", LISTEN), defaultText });
}

/** An address to listen at, if any. */
export function optionalListen(env: string, given: Omit<Given<never>, "default">) {
  return Type.Unsafe<Listen | undefined>({
    ...ListenSchema,
    ...given,
    ...info(env, "listen", LISTEN),
    defaultText: "none",
  });
}

/** An absolute path. */
export function path(env: string, given: Computed) {
  return Type.String({ pattern: "^/", ...given, ...info(env, "path", "an absolute path") });
}

/** An absolute path, if any. */
export function optionalPath(env: string, given: Omit<Given<never>, "default">) {
  return Type.Unsafe<string | undefined>({
    type: "string",
    pattern: "^/",
    ...given,
    ...info(env, "path", "an absolute path"),
    defaultText: "none",
  });
}

/** Text that fits a pattern. */
export function text(
  env: string,
  { pattern, accepts, ...given }: Given<string> & { pattern: string; accepts: string },
) {
  return Type.String({ pattern, ...given, ...info(env, "text", accepts), defaultText: given.default });
}

/** Text that fits a pattern, if any. */
export function optionalText(
  env: string,
  { pattern, accepts, ...given }: Omit<Given<never>, "default"> & { pattern: string; accepts: string },
) {
  return Type.Unsafe<string | undefined>({
    type: "string",
    pattern,
    ...given,
    ...info(env, "text", accepts),
    defaultText: "none",
  });
}

/** What a schema made here says about itself. */
export function infoOf(schema: TSchema): SettingInfo {
  return schema as TSchema & SettingInfo;
}

function info(env: string, form: SettingInfo["form"], accepts: string) {
  return { env, form, accepts };
}

function durationWords(ms: number): string {
  if (ms < 1000 && ms > 0) return `${ms}ms`;
  const units = [
    ["h", 3_600_000],
    ["m", 60_000],
  ] as const;
  // A minute and less is shown in seconds: 60s says more than 1m about a time limit.
  const found = ms > 60_000 ? units.find(([, each]) => ms % each === 0) : undefined;
  return found === undefined ? `${ms / 1000}s` : `${ms / found[1]}${found[0]}`;
}

function sizeWords(mb: number): string {
  if (mb >= 1024 * 1024 && mb % (1024 * 1024) === 0) return `${mb / 1024 / 1024}tb`;
  return mb >= 1024 && mb % 1024 === 0 ? `${mb / 1024}gb` : `${mb}mb`;
}
