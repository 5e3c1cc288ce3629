/** What other packages may use. */
import type { ConnectionBudget } from "@hibernaut/connections";
import type { GuestCommand } from "@hibernaut/guest";
import { background } from "@hibernaut/lib/background";
import type { Listen } from "@hibernaut/settings";
import type { SandboxNeeds } from "./contract.ts";
import { buildControl } from "./control/server.ts";
import { dispatch } from "./door/dispatch.ts";
import { openDoor } from "./door/listener.ts";
import { Processes } from "./inside/processes.ts";
import { SandboxesOfApi } from "./life/from-api.ts";
import { Sandboxes } from "./life/sandboxes.ts";
import { SandboxTokens } from "./life/tokens.ts";

export { buildBase } from "./base/build.ts";
export type { KeyHolder, SandboxNeeds } from "./contract.ts";
export type { ApiSandbox, SandboxesOfApi } from "./life/from-api.ts";

interface OpenOptions extends SandboxNeeds {
  at: Listen;
  tls?: { cert: string; key: string } | undefined;
  connections: ConnectionBudget;
}

/** Opens the port at which programs that use E2B's clients find their sandboxes. */
export async function openSandboxes({ at, tls, connections, ...needs }: OpenOptions): Promise<{
  url: string;
  /** The URL of a port of a sandbox, with `{port}` and `{id}` in it. */
  portUrl: string;
  /** For the platform's own API. */
  ofApi: SandboxesOfApi;
  /** Takes a command that an earlier platform started in a machine. */
  adopt(machineId: string, command: GuestCommand, label: Buffer): void;
  close(): Promise<void>;
}> {
  const sandboxes = new Sandboxes(needs);
  const tokens = new SandboxTokens(needs.secret);
  const processes = new Processes();
  const control = await buildControl({ needs, sandboxes, tokens });
  const door = dispatch({ needs, sandboxes, tokens, processes, control: control.handle });
  const { url, close } = await openDoor(door, { at, tls, connections, log: needs.log });
  sandboxes.start();
  return {
    url,
    portUrl: portUrlOf(url, needs.domain),
    ofApi: new SandboxesOfApi(sandboxes, needs.resources),
    adopt(machineId, command, label) {
      // Any machine may say so.
      if (sandboxes.find(machineId) === undefined) command.kill("this machine is not a sandbox");
      else background(processes.adopt(machineId, command, label), "taking in a program of a sandbox");
    },
    async close() {
      sandboxes.close();
      await close();
      await control.close();
    },
  };
}

/** A domain without a port is reached at the usual one of TLS, or else at the one that is listened at. */
function portUrlOf(url: string, domain: string): string {
  const { protocol, port } = new URL(url);
  const at = protocol === "https:" || /:\d+$/.test(domain) ? domain : `${domain}:${port || "80"}`;
  return `${protocol}//{port}-{id}.${at}`;
}
