/** The small app as one that keeps notes on a volume at `/data`: what it has acknowledged is on the disk. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { MachineConfig } from "@hibernaut/client";
import { patiently, request } from "./http.ts";

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

  async #ask(method: string, path: string, options: { body?: string; signal?: AbortSignal | undefined } = {}) {
    const url = `http://${this.#address}:8080${path}`;
    const { status, text } = await request(url, { method, timeout: 20_000, ...options });
    if (status !== 200) throw new Error(`${status}`);
    return text;
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
