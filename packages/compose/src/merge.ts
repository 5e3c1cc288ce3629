/** How one compose file, or the service that another extends, is laid over another. Pure. */
import { isMapping, type Mapping, own, pairsOf, textOf, type Value } from "./values.ts";

/** What a file can say of a value with a tag: `!reset` takes it away, `!override` puts it in place of the one below. */
export const RESET = "\u0000reset";
export const OVERRIDE = "\u0000override";

/** Of these, the one on top counts alone. */
const REPLACED = new Set(["command", "entrypoint", "test"]);
/** A list of `name=value` and a mapping mean the same for these. */
const PAIRS = new Set(["environment", "labels", "args", "annotations", "extra_hosts", "sysctls", "driver_opts"]);
/** Lists whose entries are told apart by where they lead to in the container. */
const BY_TARGET = new Set(["volumes", "secrets", "configs"]);

/** Returns `below` with `above` laid over it. `key` is what both are called. */
export function merged(below: Value | undefined, above: Value, key = ""): Value {
  if (isMapping(above) && RESET in above) return null;
  if (isMapping(above) && OVERRIDE in above) return above[OVERRIDE] ?? null;
  if (below === undefined || below === null || REPLACED.has(key)) return plain(above);
  if (above === null) return below;
  if (PAIRS.has(key) && (Array.isArray(below) || Array.isArray(above)))
    return { ...asMapping(below), ...asMapping(above) };
  if (key === "depends_on" && (Array.isArray(below) || Array.isArray(above)))
    return { ...dependencies(below), ...dependencies(above) };
  if (isMapping(below) && isMapping(above)) return mergedMappings(below, above);
  if (Array.isArray(below) && Array.isArray(above))
    return BY_TARGET.has(key) ? byTarget(below, above) : unique([...below, ...above]);
  if (Array.isArray(below) || Array.isArray(above)) return unique([below, above].flat());
  return plain(above);
}

function mergedMappings(below: Mapping, above: Mapping): Mapping {
  const result: Mapping = { ...below };
  for (const [key, value] of Object.entries(above)) {
    // Assigned, it would be what the object inherits from.
    if (key === "__proto__") continue;
    const isReset = isMapping(value) && RESET in value;
    if (isReset) delete result[key];
    else result[key] = merged(own(below, key), value, key);
  }
  return result;
}

/** What is left of tags where nothing is below. */
export function plain(value: Value): Value {
  if (Array.isArray(value)) return value.map(plain);
  if (!isMapping(value)) return value;
  if (OVERRIDE in value) return plain(value[OVERRIDE] ?? null);
  const entries = Object.entries(value).filter(([, one]) => !(isMapping(one) && RESET in one));
  return Object.fromEntries(entries.map(([key, one]) => [key, plain(one)]));
}

function asMapping(value: Value): Mapping {
  return Object.fromEntries(pairsOf(value));
}

/** A list of names stands for services that have started. */
function dependencies(value: Value): Mapping {
  if (!Array.isArray(value)) return isMapping(value) ? value : {};
  return Object.fromEntries(value.flatMap((name) => [[textOf(name) ?? "", { condition: "service_started" }]]));
}

function byTarget(below: Value[], above: Value[]): Value[] {
  const targets = new Set(above.map(targetOf));
  return [...below.filter((entry) => !targets.has(targetOf(entry))), ...above];
}

function targetOf(entry: Value): string {
  if (isMapping(entry)) return textOf(entry.target) ?? textOf(entry.source) ?? "";
  const parts = (textOf(entry) ?? "").split(":");
  return parts[1] ?? parts[0] ?? "";
}

function unique(values: Value[]): Value[] {
  const seen = new Set<string>();
  return values.filter((value) => {
    const text = JSON.stringify(value);
    if (seen.has(text)) return false;
    seen.add(text);
    return true;
  });
}
