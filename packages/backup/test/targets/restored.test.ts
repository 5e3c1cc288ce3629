/** A platform that was restored, while the original may still be there. */
import { expect, test } from "vitest";
import { asRestored } from "../../src/targets/target-file.ts";

test("it is another platform at its targets, and neither backs up nor deletes nor tries apps by itself", () => {
  const target = { name: "nas", url: "/mnt/nas", schedule: "0 3 * * *", keep: "7d", sealed: "s", toldOverdue: true };
  const restored = JSON.parse(asRestored(JSON.stringify({ platform: "0011223344556677", targets: [target] })));
  expect(restored.platform).toMatch(/^[0-9a-f]{16}$/);
  expect(restored.platform).not.toBe("0011223344556677");
  const idle = { schedule: null, keep: null, drillSchedule: null };
  expect(restored.targets).toEqual([{ ...target, ...idle, toldOverdue: false, pruneError: null }]);
});
