/** Asks the registry for known vulnerabilities of what the lock file names, and of nothing else. Used by CI. */
import { spawnSync } from "node:child_process";
import { auditVerdict } from "./lib/npm-audit.mjs";

/** A registry that is silent for longer does not answer. */
const TIMEOUT_MS = 120_000;

const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--package-lock-only", "--json"], {
  encoding: "utf8",
  timeout: TIMEOUT_MS,
});
const { status, lines } = auditVerdict(stdout ?? "");
for (const line of lines) console.log(line);
process.exitCode = status === "found" ? 1 : 0;
