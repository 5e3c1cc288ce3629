/** `hibernaut doctor`: whether the platform can run on this host. */
import { command } from "../command.ts";
import { CliError } from "../failure.ts";
import { style } from "../terminal.ts";

/** Prints each check when it ends, because testing KVM takes seconds. */
export const doctor = command({
  name: "doctor",
  summary: "Check whether this host can run the platform",
  description: "Prints each problem with the command that fixes it. Exits with code 1 if something is missing.",
  examples: ["hibernaut doctor", "hibernaut doctor --json"],
  async run(context) {
    const [{ diagnose }, { readSettings }] = await Promise.all([
      import("@hibernaut/platform/doctor.ts"),
      import("@hibernaut/settings"),
    ]);
    const checks = [];
    for await (const check of diagnose(readSettings(process.env))) {
      checks.push(check);
      if (!context.json) process.stdout.write(`${checkText(check)}\n`);
    }
    const failed = checks.filter(({ status }) => status === "fail");
    const ok = failed.length === 0;
    const message = `This host is not ready: ${failed.map(({ name }) => name).join(", ")}. The lines above say how to fix it.`;
    return { document: { ok, checks }, text: "", failures: ok ? [] : [new CliError("failed_precondition", message)] };
  },
});

const COLOURS = { ok: "green", warn: "yellow", fail: "red" } as const;

interface Check {
  name: string;
  status: keyof typeof COLOURS;
  found: string;
  fix?: string;
}

function checkText({ name, status, found, fix }: Check): string {
  const line = `${style(COLOURS[status], status.padEnd(4), process.stdout)}  ${name.padEnd(14)}  ${found}`;
  return fix === undefined ? line : `${line}\n      ${style("dim", `fix: ${fix}`, process.stdout)}`;
}
