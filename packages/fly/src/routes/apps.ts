/** `/v1/apps`, and what clients ask about an organisation. */
import { Type } from "typebox";
import { path } from "../ask.ts";
import { PlatformRefusal, Refusal } from "../failure.ts";
import { machineView } from "../view/machine.ts";
import { appView, volumeView } from "../view/others.ts";
import type { PlatformApp, PlatformMachine, PlatformVolume } from "../view/platform.ts";
import type { Routes } from "./table.ts";

const AppBody = Type.Object({
  name: Type.Optional(Type.String()),
  app_name: Type.Optional(Type.String()),
});

/** What clients look for when a name is taken, besides the status. */
const TAKEN = "Name has already been taken";

export function appRoutes(route: Routes): void {
  route("GET", "/apps", {}, async ({ ask }) => {
    const { apps, total_apps } = (await ask("GET", "/v1/apps")) as { apps: PlatformApp[]; total_apps: number };
    return { apps: apps.map((app) => appView(app)), total_apps };
  });

  route("POST", "/apps", { body: AppBody, status: 201 }, async ({ ask, body }) => {
    const { name, app_name } = body;
    try {
      return appView((await ask("POST", "/v1/apps", { name: name ?? app_name ?? "" })) as PlatformApp);
    } catch (error) {
      if (error instanceof PlatformRefusal && error.code === "already_exists")
        throw new Refusal(422, `${TAKEN}: ${error.message}`, "name_taken");
      throw error;
    }
  });

  route("GET", "/apps/:app_name", {}, async ({ ask, of }) => {
    const [app, volumes] = await Promise.all([
      ask("GET", path`/v1/apps/${of("app_name")}`),
      ask("GET", path`/v1/apps/${of("app_name")}/volumes`),
    ]);
    return appView(app as PlatformApp, (volumes as unknown[]).length);
  });

  route("DELETE", "/apps/:app_name", { status: 202 }, async ({ ask, of }) => {
    // There, an app goes with all that it has: clients ask their users before.
    await ask("DELETE", `${path`/v1/apps/${of("app_name")}`}?force=true`);
    return {};
  });

  route("GET", "/orgs/:org_slug/machines", {}, async ({ ask }) => {
    const machines = (await ask("GET", "/v1/machines")) as PlatformMachine[];
    return { machines: machines.map((machine) => ({ app_name: machine.app_name, ...machineView(machine) })) };
  });

  route("GET", "/orgs/:org_slug/volumes", {}, async ({ ask }) => {
    const { apps } = (await ask("GET", "/v1/apps")) as { apps: PlatformApp[] };
    const volumes = [];
    // One after the other: there may be a thousand.
    for (const { name } of apps) {
      const some = (await ask("GET", path`/v1/apps/${name}/volumes`)) as PlatformVolume[];
      volumes.push(...some.map((volume) => ({ app_name: name, ...volumeView(volume) })));
    }
    return { volumes };
  });
}
