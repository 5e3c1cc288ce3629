/** Which Node the platform needs. Everything else of the command line runs with older ones too. */
import { CliError } from "./failure.ts";

/** The platform's code runs as TypeScript, which this Node strips by itself. */
const MAJOR = 24;

/** Fails with the way out when this Node is too old to load the platform. */
export function requireNode(version = process.versions.node): void {
  if (Number(version.split(".")[0]) >= MAJOR) return;
  throw new CliError(
    "failed_precondition",
    `The platform needs Node ${MAJOR}; this is ${version}. Run it as \`npx hibernaut\`, which brings its own.`,
  );
}
