/** Which sandbox, and which of its ports, a request is for: by its headers, or by the name that it was sent to. */
import type { IncomingHttpHeaders } from "node:http";

/** The port at which E2B's own agent listens: what is sent there is for files and processes. */
export const INSIDE_PORT = 49_983;

export interface SandboxAddress {
  id: string;
  port: number;
}

const NAME = /^(\d{1,5})-([0-9a-f]{14})$/;

/** Undefined for a request to the control API, and for a name that means nothing: control says so. */
export function addressOf(headers: IncomingHttpHeaders, domain: string): SandboxAddress | undefined {
  const { "e2b-sandbox-id": id, "e2b-sandbox-port": port } = headers;
  if (typeof id === "string") return { id, port: portOf(typeof port === "string" ? port : String(INSIDE_PORT)) };
  const name = (headers.host ?? "").toLowerCase().replace(/:\d+$/, "");
  const suffix = `.${domain.replace(/:\d+$/, "")}`;
  if (!name.endsWith(suffix)) return undefined;
  const [, named, sandbox] = NAME.exec(name.slice(0, -suffix.length)) ?? [];
  return named === undefined || sandbox === undefined ? undefined : { id: sandbox, port: portOf(named) };
}

/** 0 for what is not a port. */
function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port <= 65_535 ? port : 0;
}
