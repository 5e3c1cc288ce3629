/** Following the lines of another host whose answer is not lines. */
import { never } from "@hibernaut/lib/async";
import type { LogEntry } from "@hibernaut/machines";
import { expect, test } from "vitest";
import { type FollowedHost, followHost } from "../src/cluster/follow-host.ts";

/** All lines about a host that gives these answers, and then hangs. */
async function linesOf(
  ...answers: Awaited<ReturnType<FollowedHost["ask"]>>[]
): Promise<{ texts: string[]; asked: number }> {
  let asked = 0;
  const host: FollowedHost = {
    name: "b",
    first: undefined,
    ask: async () => answers[asked++] ?? (await Promise.reject(new Error("it was not to be asked again"))),
    isUp: () => true,
    machines: () => ["m1"],
    signal: never(),
  };
  let text = "";
  for await (const piece of followHost(host)) text += piece;
  const entries = text.split("\n").filter((line) => line !== "");
  return { texts: entries.map((line) => (JSON.parse(line) as LogEntry).text), asked };
}

test("a host that refuses the token is not taken for one that does not answer, and is not asked without limit", async () => {
  expect(await linesOf("refused", "refused")).toEqual({
    texts: ["Host b does not take this token: it was revoked, or has expired. Lines of this machine end here."],
    asked: 2,
  });
});

test("a host that has not heard of a new token yet is asked once more", async () => {
  expect(await linesOf("refused", "gone")).toEqual({ texts: [], asked: 2 });
});
