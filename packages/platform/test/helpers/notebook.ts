/** The small app as one that keeps notes on a volume at `/data`: what it has acknowledged is on the disk. */
import { execFile } from "node:child_process";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { MachineConfig } from "@hibernaut/client";

const run = promisify(execFile);

/** The small app, with a volume of that name. */
export function notebook(volume = "data", size?: number): Partial<MachineConfig> {
  const mount = { volume, path: "/data", ...(size !== undefined && { size_gb: size }) };
  return { mounts: [mount], services: [{ internal_port: 8080 }] };
}

export interface Disk {
  bytes: number;
  uid: number;
  gid: number;
  mount: string;
  entries: string[];
}

export class Notes {
  readonly #address: string;

  constructor(address: string) {
    this.#address = address;
  }

  /** Written and flushed to the disk when it resolves; with `sure: false` only written. Rejects when aborted. */
  async add(text: string, { sure = true, signal }: { sure?: boolean; signal?: AbortSignal } = {}): Promise<void> {
    await this.#ask("POST", sure ? "/sure" : "/", { body: text, signal });
  }

  async all(): Promise<string[]> {
    return (await patiently(() => this.#ask("GET", "/notes"))).split("\n").filter((line) => line !== "");
  }

  async disk(): Promise<Disk> {
    return JSON.parse(await patiently(() => this.#ask("GET", "/disk"))) as Disk;
  }

  #ask(
    method: string,
    path: string,
    { body = "", signal }: { body?: string; signal?: AbortSignal | undefined } = {},
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      const sent = request(
        { host: this.#address, port: 8080, agent: false, method, path, timeout: 20_000, signal },
        (reply) => {
          let text = "";
          reply.setEncoding("utf8").on("data", (chunk: string) => {
            text += chunk;
          });
          reply.on("end", () => (reply.statusCode === 200 ? resolve(text) : reject(new Error(`${reply.statusCode}`))));
          reply.on("error", reject);
        },
      );
      sent.on("timeout", () => sent.destroy(new Error("the guest does not answer")));
      sent.on("error", reject);
      sent.end(body);
    });
  }
}

/** The emulated network accepts before the guest does, so the first tries may be reset. */
async function patiently<T>(ask: () => Promise<T>, deadlineMs = 30_000): Promise<T> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > end) throw error;
      await delay(20);
    }
  }
}

/** Where the platform keeps a volume. */
export function diskOf(dataDir: string, volumeId: string): string {
  return join(dataDir, "volumes", volumeId, "data.ext4");
}

/** What a full check of a volume's file system finds, without changing it; an empty list when there is nothing to mend. */
export async function faultsOf(file: string): Promise<string[]> {
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin`, LC_ALL: "C" };
  const { stdout, stderr, code } = await run("e2fsck", ["-n", "-f", file], { env }).then(
    (done) => ({ ...done, code: 0 }),
    (error: unknown) => error as { stdout: string; stderr: string; code: number },
  );
  const said = `${stdout}${stderr}`.split("\n").filter((line) => /warning|fix\?|journal|error|wrong|clear/i.test(line));
  return code === 0 ? said : [`e2fsck ended with ${code}`, ...said];
}
