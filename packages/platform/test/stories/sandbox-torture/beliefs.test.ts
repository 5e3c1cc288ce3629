/** What the oracle of the torture of sandboxes takes for lost, doubled or half, and what it does not. */
import { expect, test } from "vitest";
import {
  type Content,
  Contradiction,
  counted,
  type FileBelief,
  fileOf,
  flushed,
  found,
  lost,
  mayBeLost,
  mayHaveWritten,
  next,
  sent,
  taken,
  wrote,
} from "./beliefs.ts";

const may = (file: FileBelief, content: Content) => () => found(file, content);
const none = fileOf(null);

test("what was written is there while the machine lives, and after its loss what was flushed, or anything since", () => {
  const file = wrote(wrote(flushed(wrote(none, "a")), "b"), "c");
  expect(may(file, "c")).not.toThrow();
  expect(may(file, "b")).toThrow(Contradiction);
  for (const content of ["a", "b", "c"]) expect(may(lost(file), content)).not.toThrow();
  expect(may(lost(file), null)).toThrow(Contradiction);
  expect(may(lost(flushed(file)), "b")).toThrow(Contradiction);
  expect(may(mayBeLost(file), "a")).not.toThrow();
  expect(may(mayBeLost(file), null)).toThrow(Contradiction);
});

test("a write that failed happened or did not, and the first look decides", () => {
  const file = mayHaveWritten(wrote(none, "old"), "new");
  expect(may(file, "ne")).toThrow(Contradiction);
  expect(may(file, "old")).not.toThrow();
  expect(may(found(file, "new"), "old")).toThrow(Contradiction);
  expect(may(lost(flushed(found(file, "new"))), "old")).toThrow(Contradiction);
});

test("each line counts once: acknowledged ones have counted, others may have", () => {
  expect(next(new Set([null, "4"]))).toEqual(["1", "5"]);
  const one = taken(sent({ least: 0, most: 0 }));
  const unsure = sent(one);
  expect(counted(unsure, 1)).toEqual({ least: 1, most: 1 });
  expect(counted(unsure, 2)).toEqual({ least: 2, most: 2 });
  expect(() => counted(unsure, 0)).toThrow(Contradiction);
  expect(() => counted(unsure, 3)).toThrow(Contradiction);
});
