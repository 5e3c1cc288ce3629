/**
 * Images of the programs that projects of several services use, packed from Debian's own. Each is called as the one of a
 * registry is, by which the platform knows its ports and how much memory it needs.
 */
import { readdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { packNodeApp } from "../../../../../scripts/lib/node-image.mjs";
import { findTool, libraryPath } from "../../../../../scripts/lib/test-tools.mjs";

const ROOT = join(import.meta.dirname, "../../../../..");
const APPS = join(import.meta.dirname, "apps");

/** Where the image with this name is packed. */
export const imageFolder = (name: string): string => join(ROOT, ".build/test-projects", name);

interface Program {
  command: string[];
  port: number;
  /** More programs that the image has. */
  tools?: readonly string[];
}

/** Packs an image that runs one program, unless it is there. Returns its reference. */
async function programImage(name: string, { command, port, tools = [] }: Program): Promise<string> {
  const [program = ""] = command;
  const paths = [program, ...tools].map(async (tool) => [`usr/bin/${tool}`, await realpath(findTool(tool))] as const);
  const { ref } = await packNodeApp({
    out: imageFolder(name),
    inputs: [import.meta.filename],
    bare: true,
    libraryPath: libraryPath(),
    programs: Object.fromEntries(await Promise.all(paths)),
    config: {
      Env: ["PATH=/usr/bin:/bin"],
      Entrypoint: command,
      ExposedPorts: { [`${port}/tcp`]: {} },
      WorkingDir: "/",
    },
    files: async () => [],
  });
  return ref;
}

export const nginxImage = () => programImage("nginx", { command: ["nginx", "-g", "daemon off;"], port: 80 });

/** What nginx needs to be told besides its locations. It asks for names once, when it starts, and remembers their addresses. */
export const nginxConf = (locations: string): string => `
user app;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path /tmp;
  proxy_temp_path /tmp;
  fastcgi_temp_path /tmp;
  scgi_temp_path /tmp;
  uwsgi_temp_path /tmp;
  server { listen 80; ${locations} }
}
`;

/** It answers only on its loopback unless it is told that nobody needs a password. */
export const redisImage = () =>
  programImage("redis", { command: ["redis-server", "--protected-mode", "no"], port: 6379, tools: ["redis-cli"] });
export const caddyImage = () => programImage("caddy", { command: ["caddy"], port: 80 });

/** The Node programs of `apps/`, each in one file: under emulation, every file takes its time. */
export async function nodeAppsImage(): Promise<string> {
  const names = (await readdir(APPS)).filter((name) => name.endsWith(".ts"));
  const { ref } = await packNodeApp({
    out: imageFolder("apps"),
    inputs: [import.meta.filename, ...names.map((name) => join(APPS, name)), join(ROOT, "package-lock.json")],
    config: {
      User: "app",
      Env: ["PATH=/usr/local/bin:/usr/bin:/bin"],
      Entrypoint: ["node"],
      ExposedPorts: { "3000/tcp": {} },
      WorkingDir: "/app",
    },
    files: async (work) => {
      const { build } = await import("esbuild");
      await build({
        ...{ entryPoints: names.map((name) => join(APPS, name)), outdir: work, outExtension: { ".js": ".mjs" } },
        ...{ bundle: true, platform: "node", format: "esm", target: "node24", logLevel: "error" },
        banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
      });
      return names
        .map((name) => name.replace(/ts$/, "mjs"))
        .map((name) => ({ from: join(work, name), to: `app/${name}` }));
    },
  });
  return ref;
}
