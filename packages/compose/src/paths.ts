/** Relative paths of what another file defines: they begin in the directory of that file. Pure. */
import { isAbsolute, resolve } from "node:path";
import { isMapping, type Mapping, textOf, type Value } from "./values.ts";

/** Places that are not on this computer. */
const REMOTE = /^[a-z]+:\/\/|^git@/;

/** Returns a service whose paths are absolute. */
export function serviceFrom(directory: string, service: Mapping): Mapping {
  const { build, env_file: envFile, volumes, extends: base } = service;
  const absolute = (value: Value | undefined) => absolutePath(directory, textOf(value) ?? "");
  const context = (value: Value | undefined) => absolutePath(directory, textOf(value) ?? ".");
  return {
    ...service,
    ...(isMapping(base) && base.file !== undefined && { extends: { ...base, file: absolute(base.file) } }),
    ...(build !== undefined &&
      build !== null && {
        build: isMapping(build) ? { ...build, context: context(build.context) } : context(build),
      }),
    ...(envFile !== undefined &&
      envFile !== null && {
        env_file: [envFile]
          .flat()
          .map((one) => (isMapping(one) ? { ...one, path: absolute(one.path) } : absolute(one))),
      }),
    ...(Array.isArray(volumes) && {
      volumes: volumes.map((volume) => {
        if (isMapping(volume)) return volume.type === "bind" ? { ...volume, source: context(volume.source) } : volume;
        const text = textOf(volume) ?? "";
        return text.startsWith(".") ? text.replace(/^[^:]*/, (source) => absolute(source)) : text;
      }),
    }),
  };
}

/** The same for a secret or a config. */
export function contentFrom(directory: string, content: Value): Value {
  const file = isMapping(content) ? textOf(content.file) : undefined;
  return isMapping(content) && file !== undefined ? { ...content, file: absolutePath(directory, file) } : content;
}

function absolutePath(directory: string, path: string): string {
  return isAbsolute(path) || REMOTE.test(path) ? path : resolve(directory, path);
}
