/** Services that listen nowhere, though their image says where it listens: it says so for another one. Pure. */
import { knownImage } from "./known-images.ts";
import { linksOf } from "./relations.ts";
import { isMapping, type Mapping, textOf, textsOf } from "./values.ts";

/**
 * Returns the service whose image a worker runs, with a command of its own, as those do that work on a queue next to a web server.
 * Undefined for a service that says where it listens, that another one needs, or whose image is of a program that listens always.
 */
export function webOf(service: string, services: ReadonlyMap<string, Mapping>): string | undefined {
  const own = services.get(service);
  if (own === undefined || listens(own) || !hasCommand(own)) return undefined;
  const image = imageOf(own);
  if (image === undefined || knownImage(textOf(own.image) ?? "") !== undefined) return undefined;
  const others = [...services].filter(([name]) => name !== service);
  if (others.some(([, definition]) => needs(definition, service))) return undefined;
  return others.find(
    ([, definition]) => imageOf(definition) === image && (listens(definition) || !hasCommand(definition)),
  )?.[0];
}

function listens({ ports, expose }: Mapping): boolean {
  return [ports, expose].some((list) => Array.isArray(list) && list.length > 0);
}

function hasCommand({ command, entrypoint }: Mapping): boolean {
  return [command, entrypoint].some((one) => one !== undefined && one !== null);
}

/** The same for two services that run one image. */
function imageOf({ build, image }: Mapping): string | undefined {
  const isBuilt = build !== undefined && build !== null;
  return isBuilt ? JSON.stringify(build) : textOf(image);
}

function needs({ depends_on: on, links }: Mapping, service: string): boolean {
  const before = isMapping(on) ? Object.keys(on) : textsOf(on);
  return before.includes(service) || linksOf(links).some(([to]) => to === service);
}
