/**
 * Projects that many people host, from their own compose files, with images of the same programs or of ours in place of theirs. The
 * files of the projects stay as they are: an override next to each names the images, and what these have to be told.
 */
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { pythonPackage } from "../../../../../scripts/lib/test-tools.mjs";
import { ask as sql } from "../../../../../services/orders/test/postgres/server.ts";
import { PROJECTS } from "../../../../compose/test/projects.ts";
import { postgresImage } from "../postgres-image.ts";
import { ORDERS_IMAGE } from "../qemu-world.ts";
import { caddyImage, nginxConf, nginxImage, nodeAppsImage, redisImage } from "./images.ts";
import { mariadbImage } from "./mariadb-image.ts";
import type { Project } from "./project.ts";

export interface Hosted {
  /** Its name among those of `packages/compose/test/projects.ts`. */
  name: string;
  override(): Promise<string>;
  /** Puts more files next to it. */
  files?(folder: string): Promise<void>;
  /** All services, in the order in which they come up. */
  services: readonly string[];
  /** Those that never sleep, because they listen nowhere. */
  workers?: readonly string[];
  /** Has a name kept, by a request to the front. */
  keep(project: Project, name: string): Promise<void>;
  /** All names that were kept, in their order. */
  kept(project: Project): Promise<string[]>;
}

/** Writes the files of a project. */
export async function writeHosted(project: Project, { name, override, files }: Hosted): Promise<void> {
  await project.write({ "compose.yaml": PROJECTS[name] ?? "", "compose.override.yaml": await override() });
  await files?.(project.folder);
}

const SLEEP = "x-hibernaut: {idle_timeout: 3s}";
/** A program that lost its database starts again, as these projects have it. */
const APP = `restart: always, ${SLEEP}`;

/** What our own apps answer at this service: `POST /` keeps a name, `GET /` has all of them. */
function atFront(service: string): Pick<Hosted, "keep" | "kept"> {
  const ask = async (project: Project, sent: Parameters<Project["ask"]>[2]) => {
    const { status, text } = await project.ask(service, "/", sent);
    expect(status, text).toBe(200);
    return (JSON.parse(text) as { names: string[] }).names;
  };
  return {
    keep: async (project, name) => expect(await ask(project, { method: "POST", body: name })).toContain(name),
    kept: (project) => ask(project, {}),
  };
}

/** Node and PostgreSQL: the orders service in the place of the app. */
const umami: Hosted = {
  name: "umami",
  services: ["db", "umami"],
  override: async () => `
services:
  umami:
    image: ${ORDERS_IMAGE}
    environment: {DB_HOST: db, DB_USER: postgres, DB_PASSWORD: unused, DB_NAME: postgres, DB_TIMEOUT_MS: "30000", DB_START_TIMEOUT_MS: "90000"}
    healthcheck: !override {test: "curl http://localhost:3000/health", interval: 5s}
    ${SLEEP}
  db: {image: "${await postgresImage()}", environment: {DATA: /var/lib/postgresql/data}, ${SLEEP}}
`,
  async keep(project, name) {
    const body = JSON.stringify([{ companyName: name, country: "Norway" }]);
    const sent = { method: "POST", headers: { "content-type": "application/json" }, body };
    expect(await project.ask("umami", "/suppliers", sent)).toMatchObject({ status: 201 });
  },
  // The service has no list of them. The database is awake: something has just been kept there.
  async kept(project) {
    const { private_address: host } = await project.machine("db");
    const access = { host, port: 5432, user: "postgres", password: "", database: "postgres" };
    const rows = await sql(access, 'SELECT "companyName" AS name FROM suppliers ORDER BY id');
    return rows.map(({ name }) => String(name));
  },
};

/** nginx, Node, Redis, PostgreSQL, and a program in Go. */
const penpot: Hosted = {
  name: "penpot",
  services: ["penpot-postgres", "penpot-redis", "penpot-backend", "penpot-exporter", "penpot-frontend"],
  override: async () => `
services:
  penpot-frontend: {image: "${await nginxImage()}", volumes: ["./nginx.conf:/etc/nginx/nginx.conf"], ${SLEEP}}
  penpot-backend:
    {image: "${await nodeAppsImage()}", command: [backend.mjs], expose: ["6060"], environment: {PORT: "6060", REDIS_HOST: penpot-redis, DB_HOST: penpot-postgres}, ${APP}}
  penpot-exporter: {image: "${await caddyImage()}", command: respond --listen :6061 exported, expose: ["6061"], ${SLEEP}}
  penpot-postgres: {image: "${await postgresImage()}", environment: {DATA: /var/lib/postgresql/data}, ${SLEEP}}
  penpot-redis: {image: "${await redisImage()}", command: --appendonly yes, ${SLEEP}}
  penpot-mailcatch: {profiles: [mail]}
`,
  files: (folder) =>
    writeFile(
      join(folder, "nginx.conf"),
      nginxConf(
        "location / { proxy_pass http://penpot-backend:6060; } location /export { proxy_pass http://penpot-exporter:6061; }",
      ),
    ),
  ...atFront("penpot-frontend"),
};

/** Python, which is built here, with MariaDB, Redis and a worker that waits for its time. */
const nextcloud: Hosted = {
  name: "nextcloud",
  services: ["db", "redis", "app", "cron"],
  workers: ["cron"],
  // Its worker uses the volume of the app, which two machines cannot.
  override: async () => `
services:
  db: {image: "${await mariadbImage()}", ${SLEEP}}
  redis: {image: "${await redisImage()}", ${SLEEP}}
  app: {build: ./cloud, user: root, ${SLEEP}}
  cron: {build: ./cloud, volumes: !reset [], entrypoint: [python3, cron.py]}
`,
  async files(folder) {
    const cloud = join(folder, "cloud");
    await cp(join(import.meta.dirname, "cloud"), cloud, { recursive: true });
    // Debian's package; others would list it in requirements.txt.
    await cp(pythonPackage("pymysql"), join(cloud, "pymysql"), { recursive: true });
  },
  ...atFront("app"),
};

/** Node, PostgreSQL and Redis, with a queue and a worker that does what is in it, and sleeps until something is. */
const mastodon: Hosted = {
  name: "mastodon",
  services: ["db", "redis", "web", "sidekiq"],
  override: async () => {
    const image = await nodeAppsImage();
    return `
services:
  db: {image: "${await postgresImage()}", environment: {DATA: /var/lib/postgresql/data}, ${SLEEP}}
  redis: {image: "${await redisImage()}", ${SLEEP}}
  web:
    image: ${image}
    command: [web.mjs]
    environment: {PORT: "3000", REDIS_HOST: redis, DB_HOST: db}
    restart: always
    x-hibernaut: {idle_timeout: 6s, http: 3000}
  sidekiq:
    image: ${image}
    command: [worker.mjs]
    environment: {REDIS_HOST: redis, DB_HOST: db}
    depends_on: [web]
    healthcheck: !reset {}
    restart: always
    x-hibernaut: {autostop: suspend, idle_timeout: 3s}
`;
  },
  ...atFront("web"),
};

export const HOSTED: readonly Hosted[] = [umami, penpot, nextcloud, mastodon];
