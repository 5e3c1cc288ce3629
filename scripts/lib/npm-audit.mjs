/** What `npm audit --json` said. Pure. */

/** Only these fail a build: the others are read, and fixed with the next update. */
const SERIOUS = ["high", "critical"];

/**
 * Returns whether the dependencies have known serious vulnerabilities. A registry that did not answer says nothing about
 * them, so that is `skipped`, and never `ok`.
 *
 * @param {string} output of `npm audit --json`
 * @returns {{ status: "ok" | "found" | "skipped", lines: string[] }}
 */
export function auditVerdict(output) {
  const report = parse(output);
  const counts = report?.metadata?.vulnerabilities;
  if (counts === undefined) {
    const why = report?.message ?? report?.error?.summary ?? "it printed no report";
    return {
      status: "skipped",
      lines: [`The dependencies were NOT audited: npm could not ask the registry (${why}).`],
    };
  }
  const found = Object.values(report.vulnerabilities ?? {}).filter(({ severity }) => SERIOUS.includes(severity));
  if (found.length === 0) return { status: "ok", lines: ["No known serious vulnerability in the dependencies."] };
  const lines = found.map(({ name, severity, range }) => `${name} ${range}: ${severity}. See \`npm audit\`.`);
  return { status: "found", lines };
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
