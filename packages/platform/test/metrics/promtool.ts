/** Prometheus' own tool, as Debian has it. */
import { spawnSync } from "node:child_process";
import { findTool } from "../../../../scripts/lib/test-tools.mjs";

/** Units in names that were given before the names were checked, and that users' dashboards have. */
const KEPT = ["hibernaut_usage_memory_gb_seconds_total", "hibernaut_usage_storage_gb_seconds_total"];

/** What `promtool check metrics` finds wrong with a scrape. */
export function flawsOf(scrape: string): string[] {
  const { output } = promtool(["check", "metrics"], { input: scrape });
  const kept = new Set(KEPT.map((name) => `${name} metric names should not contain abbreviated units`));
  return output.split("\n").filter((line) => line !== "" && !kept.has(line));
}

/** Runs `promtool`, in a directory if given. Returns its exit code and all that it printed. */
export function promtool(args: string[], { input = "", cwd }: { input?: string; cwd?: string } = {}) {
  const { status, stdout, stderr, error } = spawnSync(findTool("promtool"), args, { input, cwd, encoding: "utf8" });
  if (error !== undefined) throw new Error(`promtool cannot be run: npm run setup -- --tests (${error.message})`);
  return { code: status, output: `${stdout}${stderr}` };
}
