/** The image of the machines: the small app of the tests on QEMU, with a shell and a few tools for commands in them. */
import { join } from "node:path";
import { ROOT } from "../../../scripts/lib/node.mjs";
import { packNodeApp } from "../../../scripts/lib/node-image.mjs";
import { compileStatic } from "../../platform/test/helpers/small-app/image.ts";

const SOURCE = join(ROOT, "packages/platform/test/helpers/small-app/app.c");
const TOOLS = ["cat", "echo", "ls", "sleep"];

/** Packs it, unless it is there, and returns its reference. It needs a C compiler. */
export async function conformanceImage() {
  const { ref } = await packNodeApp({
    bare: true,
    out: join(ROOT, ".build/fly-conformance"),
    inputs: [import.meta.filename, SOURCE],
    programs: Object.fromEntries(TOOLS.map((tool) => [`usr/bin/${tool}`, `/usr/bin/${tool}`])),
    config: {
      Env: ["PATH=/usr/local/bin:/usr/bin:/bin"],
      Entrypoint: ["/usr/local/bin/small"],
      ExposedPorts: { "8080/tcp": {} },
      WorkingDir: "/",
    },
    files: async (work) => {
      const program = join(work, "small");
      await compileStatic(SOURCE, program);
      return [{ from: program, to: "usr/local/bin/small", mode: 0o755 }];
    },
  });
  return ref;
}
