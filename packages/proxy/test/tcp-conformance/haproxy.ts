/** HAProxy in TCP mode, in front of the same apps: what ours is measured by. */
import { findTool } from "../../../../scripts/lib/test-tools.mjs";
import { type Reference, startProgram } from "../conformance/reference.ts";
import type { Mode } from "./case.ts";

/** After this, a connection that has not begun is ended, by both. */
export const BEGIN_MS = 500;

export interface Names {
  /** The ports of the apps, by hostname. */
  apps: Readonly<Record<string, number>>;
  /** The directory of certificates, each in one file with its key. */
  pems: string;
}

/** Starts it in the mode. */
export function startHaproxy(mode: Mode, names: Names): Promise<Reference> {
  return startProgram(
    {
      program: findTool("haproxy"),
      config: (_folder, port) => config(mode, port, names),
      args: (_folder, file) => ["-db", "-f", file],
    },
    0,
  );
}

function config(mode: Mode, port: number, { apps, pems }: Names): string {
  const [, first] = Object.entries(apps)[0] ?? [];
  const fetch = mode === "terminate" ? "ssl_fc_sni" : "req.ssl_sni";
  const chosen = Object.keys(apps).map((name) => `  use_backend ${backend(name)} if { ${fetch} -i ${name} }`);
  const wild = mode === "terminate" ? ["  use_backend a.test if { ssl_fc_sni -m end -i .wild.test }"] : [];
  const frontends: Record<Mode, string[]> = {
    passthrough: [
      `  bind 127.0.0.1:${port}`,
      `  tcp-request inspect-delay ${BEGIN_MS}ms`,
      "  tcp-request content accept if { req.ssl_hello_type 1 }",
      "  tcp-request content reject if WAIT_END",
      ...chosen,
    ],
    terminate: [`  bind 127.0.0.1:${port} ssl crt ${pems} strict-sni ssl-min-ver TLSv1.2`, ...chosen, ...wild],
    balanced: [`  bind 127.0.0.1:${port} accept-proxy`, "  default_backend told-v1"],
    "tells v1": [`  bind 127.0.0.1:${port}`, "  default_backend told-v1"],
    "tells v2": [`  bind 127.0.0.1:${port}`, "  default_backend told-v2"],
  };
  return `
global
  nbthread 1
  maxconn 256
defaults
  mode tcp
  timeout connect 5s
  timeout client ${BEGIN_MS}ms
  timeout server 20s
frontend clients
${frontends[mode].join("\n")}
${Object.entries(apps)
  .map(([name, appPort]) => `backend ${backend(name)}\n  server app 127.0.0.1:${appPort}`)
  .join("\n")}
backend told-v1
  server app 127.0.0.1:${first} send-proxy
backend told-v2
  server app 127.0.0.1:${first} send-proxy-v2
`;
}

function backend(name: string): string {
  return name.replaceAll("*", "any");
}
