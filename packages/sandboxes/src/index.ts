/** What other packages may use. */
import type { ConnectionBudget } from "@hibernaut/connections";
import type { GuestCommand } from "@hibernaut/guest";
import { background } from "@hibernaut/lib/background";
import type { Listen } from "@hibernaut/settings";
import { Builds } from "./build/builds.ts";
import { SWEEP_MS } from "./build/limits.ts";
import { UploadLinks } from "./build/links.ts";
import { Uploads } from "./build/uploads.ts";
import type { SandboxNeeds } from "./contract.ts";
import { buildControl } from "./control/server.ts";
import { dispatch } from "./door/dispatch.ts";
import { openDoor } from "./door/listener.ts";
import { Guests } from "./inside/guests.ts";
import { Processes } from "./inside/processes.ts";
import { SandboxesOfApi } from "./life/from-api.ts";
import { TemplateNames } from "./life/names.ts";
import { Sandboxes } from "./life/sandboxes.ts";
import { SandboxTokens } from "./life/tokens.ts";
import { Openers } from "./volume/openers.ts";
import { SandboxVolumes } from "./volume/volumes.ts";

export { buildBase } from "./base/build.ts";
export type { SandboxNeeds } from "./contract.ts";

interface OpenOptions extends SandboxNeeds {
  at: Listen;
  tls?: { cert: string; key: string } | undefined;
  connections: ConnectionBudget;
}

/** Opens the port at which programs that use E2B's clients find their sandboxes. */
export async function openSandboxes({ at, tls, connections, ...needs }: OpenOptions): Promise<{
  url: string;
  /** For the platform's own API. */
  ofApi: SandboxesOfApi;
  /** Takes a command that an earlier platform started in a machine. */
  adopt(machineId: string, command: GuestCommand, label: Buffer): void;
  close(): Promise<void>;
}> {
  const names = new TemplateNames(needs);
  const openers = new Openers({
    needs,
    templateOf: (app) => sandboxes.requireTemplate(app, "base").template.id,
  });
  const volumes = new SandboxVolumes(needs, openers);
  const sandboxes = new Sandboxes(needs, names, volumes);
  const tokens = new SandboxTokens(needs.secret);
  const processes = new Processes();
  const guests = new Guests(needs);
  const uploads = new Uploads(needs.uploadFolder);
  const builds = new Builds({ needs, names, processes, uploads });
  const links = new UploadLinks(needs.secret);
  const control = await buildControl({
    ...{ needs, sandboxes, tokens, names, builds, uploads, links, volumes, openers, guests, secure: tls !== undefined },
  });
  const door = dispatch({ needs, sandboxes, tokens, processes, guests, control: control.handle });
  // Before anything comes that would have to be told from what an earlier platform left.
  builds.recover();
  await uploads.begin(() => needs.resources.apps.list(), needs.log);
  const { url, close } = await openDoor(door, { at, tls, connections, log: needs.log });
  sandboxes.start();
  const sweeps = setInterval(
    () =>
      background(
        uploads.sweep(() => needs.resources.apps.list()),
        "looking through uploads for builds",
      ),
    SWEEP_MS,
  ).unref();
  return {
    url,
    ofApi: new SandboxesOfApi(sandboxes, needs.resources, portUrlOf(url, needs.domain)),
    adopt(machineId, command, label) {
      // Any machine may say so. One that waits in a pool is not known yet, and becomes a sandbox when it is taken.
      // The machine of a build may begin with the program of its parent.
      const record = needs.resources.machines.recordOf(machineId);
      const isOther = record !== undefined && record.temporary !== true;
      if (isOther && sandboxes.find(machineId) === undefined) command.kill("this machine is not a sandbox");
      else background(processes.adopt(machineId, command, label), "taking in a program of a sandbox");
    },
    async close() {
      sandboxes.close();
      await openers.close();
      clearInterval(sweeps);
      await builds.close();
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
