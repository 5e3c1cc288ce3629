import { expect, test } from "vitest";
import { anotherBuild } from "../../../scripts/lib/other-qemu.mjs";

test.each([
  ["1:7.2+dfsg-7+deb12u18+b3", ["1:7.2+dfsg-7+deb12u18+b3", "1:7.2+dfsg-7+deb12u15"], "1:7.2+dfsg-7+deb12u15"],
  ["1:10.0.2+ds-2+deb13u1", ["1:11.1.3+ds-1~bpo13+1", "1:10.0.13+ds-0+deb13u1"], "1:10.0.13+ds-0+deb13u1"],
  ["1:7.2+dfsg-7", ["1:7.2+dfsg-7", "1:7.20+dfsg-1"], undefined],
  ["", ["1:7.2+dfsg-7"], undefined],
])("installed is %j, there are %j: another build of its series is %j", (installed, available, found) => {
  expect(anotherBuild(installed, available) || undefined).toBe(found);
});
