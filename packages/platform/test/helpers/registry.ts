/** Debian's docker-registry on a loopback port, with an app of ours in it. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { packNodeApp } from "../../../../scripts/lib/node-image.mjs";
import { findTool } from "../../../../scripts/lib/test-tools.mjs";
import { packSmallAppWith } from "./small-app/image.ts";
import { freePort } from "../../../../scripts/lib/free-port.mjs";

const run = promisify(execFile);
const PROGRAM = findTool("docker-registry");
const START_MS = 10_000;

export class TestRegistry {
  /** `127.0.0.1:port` */
  readonly host: string;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(host: string, folder: string, child: ChildProcess) {
    this.host = host;
    this.#folder = folder;
    this.#child = child;
  }

  static async start(): Promise<TestRegistry> {
    const folder = await mkdtemp(join(tmpdir(), "hibernaut-registry-"));
    const host = `127.0.0.1:${await freePort()}`;
    const config = {
      version: 0.1,
      storage: { filesystem: { rootdirectory: join(folder, "blobs") } },
      http: { addr: host },
    };
    await writeFile(join(folder, "registry.yml"), JSON.stringify(config));
    const child = spawn(PROGRAM, ["serve", join(folder, "registry.yml")], { stdio: "ignore" });
    const registry = new TestRegistry(host, folder, child);
    await registry.#answers();
    return registry;
  }

  /** Packs the small app with these arguments and pushes it. Returns its reference. */
  async pushSmallApp(name: string, args: string[]): Promise<string> {
    const layout = join(this.#folder, "layout");
    await rm(layout, { recursive: true, force: true });
    await packSmallAppWith(args, layout);
    return this.#push(name, layout);
  }

  /** Packs a Node program that serves HTTP on port 8080 and pushes it. Returns its reference. */
  async push(name: string, program: string): Promise<string> {
    const source = join(this.#folder, "server.mjs");
    await writeFile(source, program);
    const layout = join(this.#folder, "layout");
    await packNodeApp({
      out: layout,
      inputs: [source],
      config: {
        Env: ["PATH=/usr/local/bin:/usr/bin:/bin"],
        Entrypoint: ["node"],
        Cmd: ["/app/server.mjs"],
        WorkingDir: "/app",
      },
      files: async () => [{ from: source, to: "app/server.mjs" }],
    });
    return this.#push(name, layout);
  }

  async #push(name: string, layout: string): Promise<string> {
    const target = `docker://${this.host}/${name}`;
    await run("skopeo", ["--insecure-policy", "copy", "-q", "--dest-tls-verify=false", `oci:${layout}:latest`, target]);
    return `${this.host}/${name}`;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.kill())
      await new Promise((done) => this.#child.once("exit", done));
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #answers(): Promise<void> {
    for (const end = Date.now() + START_MS; ; ) {
      const answer = await fetch(`http://${this.host}/v2/`).catch(() => undefined);
      if (answer?.status === 200) return;
      if (Date.now() > end) throw new Error("docker-registry does not start; `npm run setup -- --tests` gets it");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
