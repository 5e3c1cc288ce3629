/** What is read from guests, which are not trusted, and from the headers of clients. */
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { Fields } from "../src/inside/entry.ts";
import { keptAlive } from "../src/inside/keepalive.ts";
import { metadataOf } from "../src/inside/metadata.ts";
import { EventType, FileType } from "../src/inside/protocol/files_pb.ts";
import { WatchReader } from "../src/inside/watch-reader.ts";

const ENTRY = [
  "link",
  "12",
  "4755",
  "user",
  "users",
  "1790000000123456789",
  "/home/user/a\nb",
  "/etc/passwd",
  "1",
  "key",
  "value",
];
const bytes = (...fields: string[]) => Buffer.from(fields.map((field) => `${field}\0`).join(""));

test("an entry says what ls says, whatever is in its name", () => {
  const entry = new Fields(bytes(...ENTRY)).entry();
  expect(entry).toMatchObject({
    ...{ name: "a\nb", type: FileType.SYMLINK, path: "/home/user/a\nb", size: 12n, mode: 0o4755, owner: "user" },
    ...{ permissions: "Lrwxr-xr-x", symlinkTarget: "/etc/passwd", metadata: { key: "value" } },
  });
});

test("an agent that says too little, or nonsense, is not believed", () => {
  for (const fields of [
    [],
    ["file"],
    ENTRY.slice(0, 9),
    ENTRY.with(8, "99999999"),
    ENTRY.with(1, ""),
    ENTRY.with(5, "x"),
  ])
    expect(() => new Fields(bytes(...fields)).entry()).toThrow(/agent/);
});

test("events arrive whole, however their bytes are cut", async () => {
  const said = bytes("start", "create", "a", "0", "write", "b/c", "1", ...ENTRY, "remove", "a", "0");
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(said.length), { maxLength: 8 }), async (cuts) => {
      const output = new PassThrough();
      const places = [0, ...cuts.toSorted((one, other) => one - other), said.length];
      for (const [index, from] of places.slice(0, -1).entries()) {
        const piece = said.subarray(from, places[index + 1]);
        if (piece.length > 0) output.write(piece);
      }
      output.end();
      const reader = new WatchReader(output);
      expect(await reader.start()).toBe(true);
      const events = await Array.fromAsync(reader.events());
      expect(events.map(({ event: { type, name } }) => [type, name])).toEqual([
        [EventType.CREATE, "a"],
        [EventType.WRITE, "b/c"],
        [EventType.REMOVE, "a"],
      ]);
      expect(events[1]?.event.entry?.metadata).toEqual({ key: "value" });
    }),
    { numRuns: 30 },
  );
});

test("a silent stream shows signs of life, and loses nothing for it", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const source = async function* () {
    yield "one";
    await new Promise((resolve) => setTimeout(resolve, 12_000));
    yield "two";
  };
  const both = Promise.all([
    Array.fromAsync(keptAlive(source(), "1", () => "sign")),
    Array.fromAsync(keptAlive(source(), null, () => "sign")),
  ]);
  await vi.advanceTimersByTimeAsync(12_000);
  // Not every second, as this client wants it: there is a limit.
  expect(await both).toEqual([
    ["one", "sign", "sign", "two"],
    ["one", "two"],
  ]);
});

test("metadata is printable, bounded, and the first of each name", () => {
  const headers = ["X-Metadata-Author", "me", "x-metadata-author", "you", "Content-Type", "x", "X-Metadata-", "none"];
  expect(metadataOf(headers)).toEqual({ author: "me" });
  expect(() => metadataOf(["X-Metadata-a", "\u00e9"])).toThrow(/printable/);
  expect(() => metadataOf([`X-Metadata-${"k".repeat(247)}`, "v"])).toThrow(/longer/);
  expect(() => metadataOf(["X-Metadata-a", "v".repeat(4090)])).toThrow(/4096/);
});
