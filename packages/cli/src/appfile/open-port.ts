/** App files that leave the port of their service out, so that a deploy may find it out and write it in. Pure. */
import type { AppFile, Service } from "./model.ts";
import { findPositions } from "./positions.ts";
import { decodeKey, readAppFile } from "./read.ts";
import { DEFAULT_PORT } from "./services.ts";

/** The header of a table that is written as one: not an inline table, and not the dots in the name of a key. */
const HEADER = /^\s*\[{1,2}\s*(?:http_service|services)\s*\]{1,2}\s*(?:#[^\n]*)?$/;

/**
 * The only service of the file, if it leaves its port out. With several, or with several process groups of it, nothing says
 * whose port is found.
 */
export function openService({ services: [service, ...others] }: AppFile): Service | undefined {
  return service?.portNamed === false && service.groups.length === 1 && others.length === 0 ? service : undefined;
}

/** The line in which `hibernaut launch` tells the app the port that is assumed. */
const TOLD = new RegExp(`^(\\s*PORT\\s*=\\s*")${DEFAULT_PORT}("\\s*(?:#[^\\n]*)?)$`);

/** The text with the port in the line that tells the app the assumed one, if there is such a line. */
export function tellingPort(text: string, port: number): string {
  const at = positionsOf(text).exact(["env", "PORT"]);
  if (at === undefined) return text;
  const lines = text.split("\n");
  return lines.with(at.line - 1, (lines[at.line - 1] ?? "").replace(TOLD, `$1${port}$2`)).join("\n");
}

function positionsOf(text: string) {
  return findPositions(text.replace(/^\uFEFF/, ""), decodeKey);
}

/**
 * The text with the port in its only service and in what `hibernaut launch` wrote for PORT, and every other byte as it was.
 * Undefined if the service is not written as a table, so that a line cannot name it.
 */
export function withPort(before: string, port: number): string | undefined {
  const text = tellingPort(before, port);
  const positions = positionsOf(text);
  const at = positions.exact(["http_service"]) ?? positions.exact(["services"]);
  const lines = text.split("\n");
  const [header = "", next = ""] = at === undefined ? [] : lines.slice(at.line - 1);
  if (at === undefined || !HEADER.test(header)) return undefined;
  const [indent = ""] = /^[ \t]*(?=\S)/.exec(next) ?? [];
  const end = header.endsWith("\r") ? "\r" : "";
  const written = lines
    .toSpliced(at.line, 0, `${next.startsWith("[") ? "" : indent}internal_port = ${port}${end}`)
    .join("\n");
  return saysTheSame(written, text, port) ? written : undefined;
}

/** Whether the text with the line is read as the one without it is, where that port is assumed. */
function saysTheSame(written: string, text: string, port: number): boolean {
  const said = (of: string) =>
    JSON.stringify(readAppFile(of, undefined, port).file, (key, value: unknown) =>
      key === "portNamed" ? undefined : value,
    );
  return said(written) === said(text) && readAppFile(written).file?.services[0]?.portNamed === true;
}
