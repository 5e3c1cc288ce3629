/**
 * A process that stores a piece whose source never ends, for a test that kills it: `node orphan.ts <url> <key> <folder> <restic>`.
 */
import { join } from "node:path";
import { openAccess } from "../../src/targets/access.ts";
import { parseLocation } from "../../src/targets/location.ts";
import { Repository } from "../../src/targets/repository.ts";

const [url = "", key = "", folder = "", program = ""] = process.argv.slice(2);
const { access } = await openAccess(
  parseLocation(url),
  { key },
  { program, folder, knownHosts: join(folder, "hosts") },
);

async function* endless(): AsyncGenerator<Buffer, void> {
  yield Buffer.alloc(1024 * 1024, 1);
  console.log("fed");
  await new Promise((resolve) => setInterval(resolve, 2 ** 30));
}

const { signal } = new AbortController();
await new Repository(access).store({
  file: "piece.tar",
  set: "s",
  platform: "p",
  kind: "piece",
  source: endless(),
  signal,
});
