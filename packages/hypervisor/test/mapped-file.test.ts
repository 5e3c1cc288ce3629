/** What the kernel tells about the pages of a file that a process has mapped. */
import { describe, expect, test } from "vitest";
import { anonymousIn, isOwn, isPresent, mappingIn } from "../src/qemu/mapped-file.ts";

const line = (from: string, to: string, path: string, inode = 17) =>
  `${from}-${to} rw-p 00000000 fe:00 ${inode}                       ${path}`;
const PAGES = { begin: 0x7f0000000, end: 0x7f0010000 };

describe("the mapping of a file", () => {
  test.each([
    [
      "is found among others",
      [line("555000", "556000", "/usr/bin/qemu", 9), line("7f0000000000", "7f0010000000", "/m/memory")],
    ],
    ["is found when another file has its name", [line("7f0000000000", "7f0010000000", "/m/memory (deleted)")]],
    [
      "is one, also in parts that follow one another",
      [line("7f0000000000", "7f0008000000", "/m/memory"), line("7f0008000000", "7f0010000000", "/m/memory")],
    ],
  ])("%s", (_, lines) => {
    expect(mappingIn(lines.join("\n"), "/m/memory")).toEqual({ ...PAGES, inode: 17 });
  });

  test("has parts that are in the process alone, which smaps tells", () => {
    const smaps = [
      ...[line("555000", "556000", "/usr/bin/qemu", 9), "Anonymous:           900 kB"],
      ...[line("7f0000000000", "7f0008000000", "/m/memory"), "Rss:   4096 kB", "Anonymous:           64 kB"],
      ...[line("7f0008000000", "7f0010000000", "/m/memory (deleted)"), "Anonymous:            4 kB", "VmFlags: rd wr"],
      ...["7f0010000000-7f0020000000 rw-p 00000000 00:00 0", "Anonymous:          700 kB"],
    ];
    expect(anonymousIn(smaps.join("\n"), "/m/memory")).toBe(68 * 1024);
    expect(anonymousIn("", "/m/memory")).toBe(0);
  });

  test("is not that of a file whose path ends in the same way", () => {
    expect(mappingIn(line("7f0000000000", "7f0010000000", "/other/m/memory"), "/m/memory")).toBeUndefined();
    expect(mappingIn("", "/m/memory")).toBeUndefined();
  });

  test.each([
    ["with something between them", line("7f0008001000", "7f0010000000", "/m/memory")],
    ["of two files", line("7f0008000000", "7f0010000000", "/m/memory", 18)],
  ])("is not believed in several places %s", (_, second) => {
    const maps = [line("7f0000000000", "7f0008000000", "/m/memory"), second].join("\n");
    expect(() => mappingIn(maps, "/m/memory")).toThrow("/m/memory is mapped in several places");
  });
});

// Bit 63: present. Bit 62: swapped. Bit 61: in a file.
test.each([
  ["was never touched", 0b000, { present: false, own: false }],
  ["was read, and is the file's", 0b101, { present: true, own: false }],
  ["was read, and is not in memory any more", 0b001, { present: false, own: false }],
  ["was written to", 0b100, { present: true, own: true }],
  ["was written to, and is in the swap", 0b010, { present: false, own: true }],
  ["is the file's, and on its way to another place in memory", 0b011, { present: false, own: false }],
])("a page that %s", (_, bits, expected) => {
  const highest = (((bits & 0b100) >> 2) << 7) | (((bits & 0b010) >> 1) << 6) | ((bits & 0b001) << 5);
  expect({ present: isPresent(highest), own: isOwn(highest) }).toEqual(expected);
});
