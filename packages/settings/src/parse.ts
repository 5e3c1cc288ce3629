/** From the text of a setting to its value. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import { isPrivate, parseSubnet } from "@hibernaut/lib/ipv4";
import { parseMegabytes, parseSeconds } from "@hibernaut/lib/quantities";
import type { TSchema } from "typebox";
import { Value } from "typebox/value";
import { infoOf, type Listen, MS_PER, type SettingInfo } from "./forms.ts";

/** Throws `invalid_argument`, which names the setting as it was written and says what it accepts. */
export function parseSetting(schema: TSchema, text: string, name: string): unknown {
  const info = infoOf(schema);
  const value = readers[info.form](text, info, name === info.formerly);
  const isKnown = Value.Check(schema, value) || (info.orZero === true && value === 0);
  const valid = value !== undefined && isKnown && (name !== SUBNET || isBridgeSubnet(text));
  if (!valid) throw unacceptable(name, info.accepts);
  return value;
}

/** The refusal of a setting, or of the file of settings. */
export function unacceptable(name: string, accepts: string): HibernautError {
  return new HibernautError("invalid_argument", `${name} must be ${accepts}.`, { setting: name });
}

/** Reads a value in one form. Under its former name a plain number counts the unit that ended that name. */
type Read = (text: string, info: SettingInfo, former: boolean) => unknown;

const readers: Record<SettingInfo["form"], Read> = {
  duration: (text, { unit = "ms" }, former) => {
    const per = unit === "MB" ? 1 : MS_PER[unit];
    if (/^\d+$/.test(text)) return former ? Number(text) : rounded((Number(text) * 1000) / per);
    const seconds = /[a-z]/.test(text) ? parseSeconds(text, "s") : undefined;
    return seconds === undefined ? undefined : rounded((seconds * 1000) / per);
  },
  size: (text) => parseMegabytes(text, "m"),
  integer: (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
  list: (text) => text.split(",").map((item) => item.trim()),
  listen: readListen,
  choice: (text) => text,
  path: (text) => text,
  text: (text) => text,
};

function readListen(text: string): Listen | undefined {
  const match = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text);
  return match === null ? undefined : { host: match[1] ?? match[2] ?? "", port: Number(match[3]) };
}

const SUBNET = "HIBERNAUT_NETWORK_SUBNET";

/** A private subnet, as large as a bridge has room for at most, and with room for some machines at least. */
function isBridgeSubnet(text: string): boolean {
  const parsed = parseSubnet(text);
  return text === "auto" || (parsed !== undefined && parsed.prefix >= 22 && parsed.prefix <= 28 && isPrivate(parsed));
}

/** Without the dust of binary fractions. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
