/** The audit of dependencies, which CI runs where there is a registry. */
import { expect, test } from "vitest";
import { auditVerdict } from "../../../../scripts/lib/npm-audit.mjs";

const report = (...severities: string[]) =>
  JSON.stringify({
    vulnerabilities: Object.fromEntries(
      severities.map((severity, index) => [`p${index}`, { name: `p${index}`, severity, range: "<1" }]),
    ),
    metadata: { vulnerabilities: { total: severities.length } },
  });

test("serious vulnerabilities fail it, and others do not", () => {
  expect(auditVerdict(report()).status).toBe("ok");
  expect(auditVerdict(report("low", "moderate")).status).toBe("ok");
  expect(auditVerdict(report("low", "high"))).toEqual({ status: "found", lines: ["p1 <1: high. See `npm audit`."] });
});

test.each(["", "no JSON", '{"message":"405 Method Not Allowed"}'])(
  "without a registry it says that it was skipped: %j",
  (output) => {
    const { status, lines } = auditVerdict(output);
    expect(status).toBe("skipped");
    expect(lines.join()).toContain("NOT audited");
  },
);
