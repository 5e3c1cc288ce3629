/** A host that cannot start a program, for want of a descriptor for instance. */
import type { execFile } from "node:child_process";
import { expect, test, vi } from "vitest";
import { nft } from "../src/bridge/commands.ts";

vi.mock(import("node:child_process"), async (original) => {
  const cannot = ((program: string, _args: unknown, _options: unknown, done: (...answer: unknown[]) => void) => {
    const error = Object.assign(new Error(`spawn ${program} EMFILE`), { code: "EMFILE", syscall: `spawn ${program}` });
    setImmediate(() => done(error, "", ""));
    return {};
  }) as unknown as typeof execFile;
  return { ...(await original()), execFile: cannot };
});

test("says so, and keeps the cause for those who decide whether to try again", async () => {
  await expect(nft("")).rejects.toMatchObject({
    message: "The bridge network cannot be set up: nft failed, because spawn nft EMFILE. Run `hibernaut doctor`.",
    cause: { code: "EMFILE" },
  });
});
