import { afterAll, beforeAll } from "vitest";
import { openTempFolder, type TempFolder } from "../../platform/test/helpers/temp.ts";

/** A directory for all tests of a file or group, which is removed after them. */
export function useTempFolder(name: string): { readonly path: string } {
  let folder: TempFolder;
  beforeAll(async () => {
    folder = await openTempFolder(name);
  });
  afterAll(() => folder.dispose());
  return {
    get path() {
      return folder.path;
    },
  };
}
