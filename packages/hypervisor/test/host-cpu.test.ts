/** The platform asks QEMU about the host's CPU when it starts under KVM. A QEMU that is silent must not be a riddle. */
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { connectToQemu } from "../src/qemu/connect.ts";
import { readHostCpu } from "../src/qemu/host-cpu.ts";
import { USUAL_LIMITS } from "../src/qemu/limits.ts";

test("a QEMU that does not answer in time is reported with what to do", async () => {
  const program = join(await tempFolder(), "qemu");
  await writeFile(program, "#!/bin/sh\nexec sleep 60\n");
  await chmod(program, 0o755);
  const limits = { ...USUAL_LIMITS, hostCpuMs: 200 };
  await expect(readHostCpu(program, "kvm", { limits })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(/did not answer within 0\.2 s.*Start the platform again/),
  });
});

test("a connection that is given up rejects with the reason of its signal", async () => {
  const path = join(await tempFolder(), "qmp.sock");
  await expect(connectToQemu(path, AbortSignal.timeout(50))).rejects.toMatchObject({ name: "TimeoutError" });
});
