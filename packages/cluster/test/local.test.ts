import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openTempFolder, type TempFolder } from "../../platform/test/helpers/temp.ts";
import { LocalDirectory } from "../src/local/directory.ts";
import { describeDirectory } from "./directory-conformance.ts";

/** Few enough that a test reaches the end, and more than the conformance tests need. */
const HISTORY = 40;

let folder: TempFolder;
const open = () => new LocalDirectory(join(folder.path, "directory.db"), { history: HISTORY });
beforeAll(async () => {
  folder = await openTempFolder("directory");
});
afterAll(() => folder.dispose());

describeDirectory("in an SQLite file", () => ({
  open,
  async forget() {
    const directory = open();
    for (let count = 0; count < HISTORY - 1; count += 1)
      await directory.transact([], [{ key: "/elsewhere", value: String(count) }]);
    await directory.close();
  },
  leaseMs: 300,
}));

it("keeps everything in the file", async () => {
  const first = open();
  await first.transact([], [{ key: "/hib/kept", value: "1" }]);
  await first.close();
  const second = open();
  expect((await second.get("/hib/kept"))?.value).toBe("1");
  await second.close();
});
