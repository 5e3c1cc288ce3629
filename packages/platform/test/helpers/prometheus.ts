/** A real Prometheus server on a port of its own, with its data in a temporary directory. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { findTool } from "../../../../scripts/lib/test-tools.mjs";

interface Series {
  metric: Record<string, string>;
  value: [time: number, value: string];
}

export class Prometheus {
  readonly #url: string;
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.#url = url;
    this.#child = child;
  }

  /** Starts it with a job that reads the metrics of platforms every second, and with rules. */
  static async start(folder: string, target: { apiUrls: string[]; token: string; rules: string }): Promise<Prometheus> {
    const port = await freePort();
    await writeFile(join(folder, "token"), target.token, { mode: 0o600 });
    const config = [
      "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s",
      `rule_files:\n  - ${target.rules}`,
      "scrape_configs:\n  - job_name: hibernaut",
      `    authorization:\n      credentials_file: ${join(folder, "token")}`,
      `    static_configs:\n      - targets: ${JSON.stringify(target.apiUrls.map((url) => new URL(url).host))}`,
    ];
    await writeFile(join(folder, "prometheus.yml"), `${config.join("\n")}\n`);
    const args = [
      `--config.file=${join(folder, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--log.level=error",
    ];
    const child = spawn(findTool("prometheus"), args, { stdio: ["ignore", "ignore", "inherit"] });
    await once(child, "spawn");
    return new Prometheus(`http://127.0.0.1:${port}`, child);
  }

  /** The series that an expression has now. Rejects while the server is not ready, and for what is not PromQL. */
  async query(expression: string): Promise<Series[]> {
    const answer = await fetch(`${this.#url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const { status, data, error } = (await answer.json()) as {
      status: string;
      data: { result: Series[] };
      error?: string;
    };
    if (status !== "success") throw new Error(`${expression}: ${error}`);
    return data.result;
  }

  /** The first value of an expression; NaN without one. */
  async value(expression: string): Promise<number> {
    const [first] = await this.query(expression);
    return Number(first?.value[1] ?? Number.NaN);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
  }
}
