/** The hostile app as an image: see `app.c`. */
import { join } from "node:path";
import { compileStatic, writeImage } from "../small-app/image.ts";

/** Packs it into a directory, and returns its reference. What it does is the machine's command. */
export async function packHostileApp(folder: string): Promise<string> {
  const program = join(folder, "hostile");
  await compileStatic(join(import.meta.dirname, "app.c"), program);
  await writeImage(join(folder, "layout"), program, []);
  return `oci:${join(folder, "layout")}:latest`;
}
