/** A memory that a process has mapped privately, and what becomes of it. In place of QEMU, the process only maps and writes. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { keepOwnMemory, ownMemory, prepareOwnMemory } from "../src/qemu/borrowed-memory.ts";

const PAGE = 4096;
const PAGES = 1024;
/** Maps the file privately, and writes to the page that each line of its input names. */
const MAPPER = `
import mmap, sys
file = open(sys.argv[1], "rb")
memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
print("ready", flush=True)
for line in sys.stdin:
    page = int(line)
    memory[page * 4096:page * 4096 + 3] = b"own"
    print("written", flush=True)
`;
const never = new AbortController().signal;

let folder: string;
let memory: string;
let mapper: ChildProcess;
beforeEach(async () => {
  folder = await tempFolder("borrowed-memory");
  memory = join(folder, "memory");
  await writeFile(memory, Buffer.alloc(PAGES * PAGE, "common"));
  mapper = spawn("python3", ["-c", MAPPER, memory], { stdio: ["pipe", "pipe", "inherit"] });
  await said();
});
afterEach(() => mapper.kill("SIGKILL"));

async function said(): Promise<void> {
  if (mapper.stdout === null) throw new Error("it says nothing");
  await once(mapper.stdout, "data");
}
async function write(page: number): Promise<void> {
  mapper.stdin?.write(`${page}\n`);
  await said();
}
const borrower = () => ({ pid: mapper.pid ?? 0, memory });
const beginningOf = async (page: number) => (await readFile(memory)).toString("utf8", page * PAGE, page * PAGE + 3);

test("what it has written is in a file of its own, again and again, and not in the common one", async () => {
  const common = await stat(memory);
  await write(3);
  await prepareOwnMemory(borrower(), { durable: true }, never);
  await write(700);
  await keepOwnMemory(borrower(), { durable: true }, never);
  expect((await stat(memory)).ino).not.toBe(common.ino);
  expect((await stat(`${memory}.lent`)).ino).toBe(common.ino);
  for (const page of [3, 700]) expect(await beginningOf(page)).toBe("own");
  expect(await beginningOf(4)).not.toBe("own");
  expect(await readFile(`${memory}.lent`)).toEqual(Buffer.alloc(PAGES * PAGE, "common"));
  await write(5);
  await prepareOwnMemory(borrower(), { durable: true }, never);
  await keepOwnMemory(borrower(), { durable: true }, never);
  expect(await beginningOf(5)).toBe("own");
  expect((await readdir(folder)).sort()).toEqual(["memory", "memory.lent"]);
});

test("what it has alone is what it has written to, also once it has a file of its own", async () => {
  expect(await ownMemory(borrower())).toBe(0);
  for (const page of [3, 700, 3]) await write(page);
  expect(await ownMemory(borrower())).toBe(2 * PAGE);
  await prepareOwnMemory(borrower(), { durable: false }, never);
  await keepOwnMemory(borrower(), { durable: false }, never);
  expect(await ownMemory(borrower())).toBe(2 * PAGE);
  mapper.kill("SIGKILL");
  await once(mapper, "exit");
  await expect(ownMemory(borrower())).rejects.toThrow();
});
