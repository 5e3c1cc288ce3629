/** An app with everything that an app can have at the port of sandboxes. */
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { enveloped, type Port } from "./port.ts";

export interface Tenant {
  app: string;
  key: string;
  /** The machine, not a sandbox, of which the template is made. */
  machine: string;
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
  /** A volume and its token, the sandbox that has it, and a volume that none has. */
  volume: string;
  volumeToken: string;
  keeper: string;
  freeVolume: string;
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

/** Asks as a client does. Throws when it is refused. */
async function call(port: Port, route: string, body: unknown, headers: Record<string, string>) {
  const reply = await port.ask(route, { headers: { ...JSON_TYPE, ...headers }, body: JSON.stringify(body) });
  if (reply.status >= 300) throw new Error(`${route}: ${reply.status} ${reply.body}`);
  return (reply.body === "" ? {} : JSON.parse(reply.body)) as Record<string, string>;
}

type Sandboxes = Pick<Tenant, "running" | "paused" | "token" | "traffic" | "pausedToken" | "watcher" | "program">;

/** Makes sandboxes of a template: one runs, with a program and a watcher, and one is paused. */
export async function newSandboxes(
  port: Port,
  { app, key, template }: Pick<Tenant, "app" | "key" | "template">,
): Promise<Sandboxes> {
  const chosen = {
    ...{ templateID: template, secure: true, timeout: 3600, network: { allowPublicTraffic: false } },
    ...{ metadata: { owner: `label-of-${app}` }, envVars: { WHOSE: `variable-of-${app}` } },
  };
  const by = { "x-api-key": key };
  const made = await call(port, "POST /sandboxes", chosen, by);
  const { sandboxID: running = "", envdAccessToken: token = "", trafficAccessToken: traffic = "" } = made;
  const { sandboxID: paused = "", envdAccessToken: pausedToken = "" } = await call(port, "POST /sandboxes", chosen, by);
  await call(port, `POST /sandboxes/${paused}/pause`, {}, by);
  const watch = { path: "/" };
  const { watcherId: watcher = "" } = await call(
    port,
    "POST /filesystem.Filesystem/CreateWatcher",
    watch,
    inside(running, token),
  );
  const program = `program-of-${app}`;
  await port.ask("POST /process.Process/Start", {
    headers: { "content-type": "application/connect+json", ...inside(running, token) },
    body: enveloped({ process: { cmd: "stay" }, tag: program }),
    endless: true,
  });
  return { running, paused, token, traffic, pausedToken, watcher, program };
}

type Kept = Pick<Tenant, "volume" | "volumeToken" | "keeper" | "freeVolume">;

/** Makes two volumes, one of them in a sandbox. */
export async function newVolumes(
  port: Port,
  { app, key, template }: Pick<Tenant, "app" | "key" | "template">,
): Promise<Kept> {
  const by = { "x-api-key": key };
  const make = (name: string) => call(port, "POST /volumes", { name: `${app}-${name}-${volumes++}` }, by);
  const { volumeID: volume = "", token: volumeToken = "" } = await make("data");
  const { volumeID: freeVolume = "" } = await make("free");
  const chosen = { templateID: template, timeout: 3600, volumeMounts: [{ name: volume, path: "/data" }] };
  const { sandboxID: keeper = "" } = await call(port, "POST /sandboxes", chosen, by);
  return { volume, volumeToken, keeper, freeVolume };
}

let volumes = 0;

/** Makes the template, and returns its id. */
export async function newTemplate(
  { platform }: Port,
  { app, machine, template: name }: Pick<Tenant, "app" | "machine" | "template">,
): Promise<string> {
  const made = await platform.templates.createOf(app, { machine, name }, new AbortController().signal);
  return made.template.id;
}

/** Makes an app, and all of it through the port. */
export async function newTenant(port: Port, app: string): Promise<Tenant> {
  const { machines, apps } = port.platform;
  apps.create(app);
  const key = port.key(["admin"], [app]);
  const by = { "x-api-key": key };
  const { record } = await machines.create(app, { config: SMALL });
  await machines.wait(app, record.id, ["running"], { timeoutMs: 5000 });
  const template = `${app}-base`;
  const templateId = await newTemplate(port, { app, machine: record.id, template });
  const sandboxes = await newSandboxes(port, { app, key, template });
  const kept = await newVolumes(port, { app, key, template });
  await call(port, `POST /sandboxes/${sandboxes.running}/snapshots`, { name: `${app}-snapshot` }, by);
  await call(port, "POST /templates/tags", { target: template, tags: ["v1"] }, by);
  const built = `${app}-built`;
  const { buildID: build = "" } = await call(port, "POST /v3/templates", { name: built }, by);
  const hash = Buffer.from(app).toString("hex").padEnd(64, "0");
  const files = await port.ask(`GET /templates/${built}/files/${hash}`, { headers: by });
  const { search: link } = new URL((JSON.parse(files.body) as { url: string }).url);
  await port.ask(`PUT /uploads${link}`, { body: `upload of ${app}` });
  return { ...sandboxes, ...kept, ...{ app, key, machine: record.id, template, templateId, built, build, hash, link } };
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
    volumes: world.store.volumes.list(app),
    ...{ tags: builds.tags(app), keys: tokens.list().filter(({ apps }) => apps?.includes(app)) },
    uploads: uploads.filter((name) => name.startsWith(`${app}-`)).toSorted(),
  });
}
