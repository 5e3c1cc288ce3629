/** An app with everything that an app can have at the port of sandboxes. */
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { enveloped, type Port } from "./port.ts";

export interface Tenant {
  app: string;
  key: string;
  /** Ids of sandboxes: one runs, one sleeps. */
  running: string;
  paused: string;
  /** Access tokens of the one that runs: for its files and programs, and for its ports. */
  token: string;
  traffic: string;
  pausedToken: string;
  /** A template that is also a name with tags, and its id. */
  template: string;
  templateId: string;
  /** A template whose build is announced, and the build. */
  built: string;
  build: string;
  /** Of files that were uploaded, and a link to upload them. */
  hash: string;
  link: string;
  watcher: string;
  /** The tag of a program that runs. */
  program: string;
}

const JSON_TYPE = { "content-type": "application/json" };

/** What a request to the inside of a sandbox has. */
export const inside = (id: string, token?: string): Record<string, string> => ({
  "e2b-sandbox-id": id,
  ...(token !== undefined && { "x-access-token": token }),
});

/** Makes all of it through the port, as a client does. Throws when anything of it is refused. */
export async function newTenant(port: Port, app: string): Promise<Tenant> {
  const { machines, templates, apps } = port.platform;
  apps.create(app);
  const key = port.key(["admin"], [app]);
  const call = async (route: string, body: unknown, headers: Record<string, string> = { "x-api-key": key }) => {
    const reply = await port.ask(route, { headers: { ...JSON_TYPE, ...headers }, body: JSON.stringify(body) });
    if (reply.status >= 300) throw new Error(`${route}: ${reply.status} ${reply.body}`);
    return (reply.body === "" ? {} : JSON.parse(reply.body)) as Record<string, string>;
  };
  const { record } = await machines.create(app, { config: SMALL });
  await machines.wait(app, record.id, ["running"], { timeoutMs: 5000 });
  const template = `${app}-base`;
  const kept = await templates.createOf(app, { machine: record.id, name: template }, new AbortController().signal);
  const chosen = {
    ...{ templateID: template, secure: true, timeout: 3600, network: { allowPublicTraffic: false } },
    ...{ metadata: { owner: `label-of-${app}` }, envVars: { WHOSE: `variable-of-${app}` } },
  };
  const running = await call("POST /sandboxes", chosen);
  const paused = await call("POST /sandboxes", chosen);
  await call(`POST /sandboxes/${paused.sandboxID}/pause`, {});
  const id = running.sandboxID ?? "";
  await call(`POST /sandboxes/${id}/snapshots`, { name: `${app}-snapshot` });
  await call("POST /templates/tags", { target: template, tags: ["v1"] });
  const built = `${app}-built`;
  const { buildID: build = "" } = await call("POST /v3/templates", { name: built });
  const hash = Buffer.from(app).toString("hex").padEnd(64, "0");
  const files = await port.ask(`GET /templates/${built}/files/${hash}`, { headers: { "x-api-key": key } });
  const { search } = new URL((JSON.parse(files.body) as { url: string }).url);
  await port.ask(`PUT /uploads${search}`, { body: `upload of ${app}` });
  const token = running.envdAccessToken ?? "";
  const { watcherId = "" } = await call("POST /filesystem.Filesystem/CreateWatcher", { path: "/" }, inside(id, token));
  const program = `program-of-${app}`;
  await port.ask("POST /process.Process/Start", {
    headers: { "content-type": "application/connect+json", ...inside(id, token) },
    body: enveloped({ process: { cmd: "stay" }, tag: program }),
    endless: true,
  });
  return {
    ...{ app, key, running: id, paused: paused.sandboxID ?? "", token, traffic: running.trafficAccessToken ?? "" },
    ...{ pausedToken: paused.envdAccessToken ?? "", template, templateId: kept.template.id, built, build, hash },
    ...{ link: search, watcher: watcherId, program },
  };
}

/** All that the platform has of an app, as text: it is the same as long as nobody changes anything. */
export async function stateOf({ world, platform }: Port, app: string): Promise<string> {
  const { machines, templates, builds, tokens } = world.store;
  const uploads = await import("node:fs/promises").then(({ readdir }) =>
    readdir(`${world.folder}/build-uploads`, { recursive: true }),
  );
  const records = platform.machines.list(app).map(({ record }) => record);
  return JSON.stringify({
    ...{ records, stored: machines.list(app), templates: templates.list(app), builds: builds.list(app) },
    ...{ tags: builds.tags(app), keys: tokens.list().filter(({ apps }) => apps?.includes(app)) },
    uploads: uploads.filter((name) => name.startsWith(`${app}-`)).toSorted(),
  });
}
