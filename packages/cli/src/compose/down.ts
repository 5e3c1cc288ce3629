/** Takes a project down: what compose made, and nothing else. */
import type { App, HibernautClient } from "@hibernaut/client";
import { requireAllHosts } from "../absent-hosts.ts";
import { type Loss, lossOf } from "../app-loss.ts";
import type { Result } from "../command.ts";
import { agree } from "../confirming.ts";
import type { Context } from "../context.ts";
import { count } from "../terminal.ts";
import { isOfCompose } from "./apps.ts";

/** As long as an app takes that is destroyed whole, in seconds. */
const DESTROY_S = 60;

interface DownOptions {
  /** Whether volumes go as well, and the apps with them. */
  volumes: boolean;
  yes: boolean;
}

/**
 * Destroys the machines of the project's apps, which keep everything else, or with `volumes` the apps with all that they have.
 * Leaves apps alone that have machines which compose did not make, and those without machines that no file describes: anybody
 * may have made them. Asks first, with everything that will be lost.
 *
 * @param described the apps that the project's files describe
 */
export async function takeDown(
  context: Context,
  { name, apps, described }: { name: string; apps: readonly App[]; described: ReadonlySet<string> },
  { volumes, yes }: DownOptions,
): Promise<Result> {
  const client = await context.client();
  const all = await Promise.all(apps.map((app) => lossOf(client, app.name)));
  const own = all.filter(({ app, machines }) =>
    machines.length > 0 || !volumes ? machines.every(isOfCompose) : described.has(app),
  );
  for (const { app, machines } of all.filter((loss) => !own.includes(loss)))
    context.warn(
      machines.length > 0
        ? `App ${app} has machines that no compose file describes, and is left alone.`
        : `App ${app} has no machines, and no service of the file is called so: it is left alone. If nobody needs it: hibernaut apps destroy ${app}`,
    );
  const missing = [...new Set(own.flatMap((loss) => loss.missing))];
  if (volumes) requireAllHosts(missing, `may have volumes of the project ${name}, which would be deleted`);
  await agree(lossText(own, { name, volumes }), { yes, what: "destroyed" });
  const done = await Promise.all(
    own.map(async ({ app, machines }) => {
      if (volumes) await client.destroyApp(app, { force: true });
      else await Promise.all(machines.map(({ id }) => destroy(client, app, id)));
      return { app, machines: machines.length, kept: !volumes };
    }),
  );
  const total = done.reduce((sum, { machines }) => sum + machines, 0);
  const rest = volumes ? "" : " Its apps are kept, with their volumes and secrets.";
  return { document: { project: name, apps: done }, text: `Destroyed ${count(total, "machine")} of ${name}.${rest}` };
}

/** Resolves once the machine is gone: what comes next may need its volumes. */
async function destroy(client: HibernautClient, app: string, id: string): Promise<void> {
  await client.destroyMachine(app, id, { force: true });
  await client.waitForMachine(app, id, { state: ["destroyed"], timeout: DESTROY_S });
}

function lossText(losses: readonly Loss[], { name, volumes }: { name: string; volumes: boolean }): string {
  const line = ({ app, machines, volumes: disks }: Loss) => {
    const parts = [
      count(machines.length, "machine"),
      ...(volumes ? disks.map((disk) => `volume ${disk.name}, ${disk.size_gb} GB`) : []),
    ];
    return `  ${app}: ${parts.join(", ")}`;
  };
  const rest = volumes
    ? "With the apps go their secrets, hostnames and templates. Data on volumes cannot be recovered."
    : "What they wrote to volumes is kept; what they wrote elsewhere is not.";
  return [`Of the project ${name}, these will be destroyed:`, ...losses.map(line), rest].join("\n");
}
