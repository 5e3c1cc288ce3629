import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { agree, confirm } from "../src/confirming.ts";
import { exitCodeOf, toFailure } from "../src/failure.ts";

/** A question to a user who types these keys. */
async function asked(keys: string, terminal = true) {
  const input = new PassThrough();
  const output = new PassThrough();
  const answer = confirm("Continue?", { input, output, terminal });
  input.end(keys);
  return { answer: await answer.catch((error: unknown) => error), shown: String(output.read()) };
}

test.each([
  ["y\r", true],
  ["YES\r", true],
  ["n\r", false],
  ["\r", false],
  ["yeah\r", false],
])("%j is an answer", async (keys, agreed) => {
  const { answer, shown } = await asked(keys);
  expect(answer).toBe(agreed);
  expect(shown).toContain("Continue? [y/N] ");
});

test("the end of the input is a no", async () => {
  expect((await asked("\u0004")).answer).toBe(false);
  expect((await asked("", false)).answer).toBe(false);
});

test("Ctrl-C ends with 130, and what follows begins on a line of its own", async () => {
  const { answer, shown } = await asked("\u0003");
  expect(exitCodeOf(toFailure(answer))).toBe(130);
  expect(shown.endsWith("\n")).toBe(true);
});

test("without a terminal --yes is asked for, and nothing is done", async () => {
  await expect(agree("Volume 1 will be gone.", { yes: false, canAsk: false, what: "destroyed" })).rejects.toMatchObject(
    {
      code: "usage",
      message: "Nothing was destroyed. Volume 1 will be gone. Add --yes to confirm.",
    },
  );
});
