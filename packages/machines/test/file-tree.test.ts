/** What is made of an agent's answers about files, whatever they are: the guest is not trusted. */
import { Readable } from "node:stream";
import { FsExit, type GuestCommand, GuestError } from "@hibernaut/guest";
import { expect, test } from "vitest";
import { FileTree } from "../src/resources/file-tree.ts";

const never = new AbortController().signal;
const record = (path: string, kind = "file", mtime = "1000000") =>
  [kind, "7", "644", "user", "user", mtime, path, "", "0", ""].join("\0");

/** A machine whose agent says this, and ends so; with `exit` undefined, never. */
function machine(
  said: Iterable<string | Buffer>,
  { exit = { code: 0 }, why = "", hangs = false }: { exit?: { code: number }; why?: string; hangs?: boolean } = {},
  timeoutMs?: number,
) {
  const killed: string[] = [];
  const run = () => {
    const ended = Promise.withResolvers<Awaited<GuestCommand["exit"]>>();
    ended.promise.catch(() => {});
    const stdout = hangs ? new Readable({ read: () => {} }) : Readable.from(said, { objectMode: false });
    if (!hangs) ended.resolve({ signal: 0, timedOut: false, failure: undefined, ...exit });
    const kill = (reason = "the caller is gone") => {
      killed.push(reason);
      ended.reject(new GuestError(reason));
      if (hangs) stdout.push(null);
    };
    return { stdout, stderr: Readable.from([why], { objectMode: false }), exit: ended.promise, kill };
  };
  const commands = { run: run as unknown as () => GuestCommand };
  return { killed, tree: new FileTree(commands, { ...(timeoutMs !== undefined && { timeoutMs }) }) };
}

function* endless(): Generator<Buffer> {
  for (let index = 0; ; index += 1) yield Buffer.from(record(`/a/${index}`).repeat(100));
}

test("a list that does not end is cut after whole entries, and its task is killed", async () => {
  const { tree, killed } = machine(endless());
  const { entries, cut } = await tree.list("shop", "id", "/a", 1, never);
  expect(cut).toBe(true);
  expect(entries.length).toBeGreaterThan(10_000);
  expect(entries.at(-1)).toMatchObject({ kind: "file", size: 7, mode: 0o644, modifiedMs: 1 });
  expect(killed).toEqual(["it says too much"]);
});

test.each([
  ["half an entry", [record("/a"), "file\0"]],
  ["a size that is not a number", [record("/a").replace("7", "many")]],
  ["a time before 1970", [record("/a", "file", "-5")]],
])("%s is the guest's fault", async (_what, said) => {
  await expect(machine(said).tree.list("shop", "id", "/a", 1, never)).rejects.toMatchObject({ code: "aborted" });
});

test.each([
  [FsExit.notFound, "not_found"],
  [FsExit.refused, "invalid_argument"],
  [FsExit.exists, "already_exists"],
  [FsExit.notDirectory, "invalid_argument"],
  [FsExit.noSpace, "failed_precondition"],
  [FsExit.failed, "aborted"],
  [255, "aborted"],
])("an end with %i is %s, with what the agent says", async (code, expected) => {
  const { tree } = machine([], { exit: { code }, why: "/a: no\n" });
  const work = tree.remove("shop", "id", "/a", never);
  await expect(work).rejects.toMatchObject({ code: expected, message: expect.stringMatching(/^\/a: no\. \w.*\.$/) });
});

test("a task that does not end is given up, and so is one whose client is gone", async () => {
  const slow = machine([], { hangs: true }, 20);
  const late = { code: "deadline_exceeded" };
  await expect(slow.tree.makeDirectory("shop", "id", "/a", never)).rejects.toMatchObject(late);
  const gone = new AbortController();
  const left = machine([], { hangs: true });
  const waiting = left.tree.remove("shop", "id", "/a", gone.signal);
  gone.abort();
  await expect(waiting).rejects.toMatchObject({ code: "aborted" });
  expect([slow.killed, left.killed]).toEqual([["the caller is gone"], ["the caller is gone"]]);
});
