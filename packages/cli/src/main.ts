/** The `hibernaut` program. */
import { run } from "./run.ts";

// A reader that stops early (`hibernaut --help | head`) is not a failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit();
    throw error;
  });
}

process.exitCode = await run(process.argv.slice(2));
