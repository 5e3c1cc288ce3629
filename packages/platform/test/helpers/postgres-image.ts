/** An image with PostgreSQL that keeps its data on a volume at `/data`, packed from this machine's own programs. */
import { readdir, realpath } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { packNodeApp } from "../../../../scripts/lib/node-image.mjs";
import { libraryPath } from "../../../../scripts/lib/test-tools.mjs";
import { findPrograms } from "../../../../services/orders/test/postgres/server.ts";

const ROOT = join(import.meta.dirname, "../../../..");
/** All that `initdb` and a server without extensions load. */
const MODULES = ["plpgsql.so", "dict_snowball.so"];

/** As the user `app`: makes the cluster at the first start, and lets everybody in. */
const START = `
set -e
if [ ! -s /data/pg/PG_VERSION ]; then
  initdb -D /data/pg -U postgres -A trust -E UTF8 --no-locale
  echo "host all all all trust" >> /data/pg/pg_hba.conf
fi
exec postgres -D /data/pg -c listen_addresses=* -c unix_socket_directories= -c fsync=on -c shared_buffers=16MB -c max_connections=20
`;

/** Packs it, unless it is there, and returns its reference. It listens on 5432. */
export async function postgresImage(): Promise<string> {
  const bin = findPrograms();
  const version = dirname(bin);
  // .../usr/lib/postgresql/15 and .../usr/share/postgresql/15: the server finds the one from the other.
  const usr = dirname(dirname(dirname(version)));
  const share = join(usr, "share/postgresql", relative(dirname(version), version));
  const inImage = (path: string) => join("usr", relative(usr, path));
  const names = (await readdir(share, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const paths = names.map((entry) => join(entry.parentPath, entry.name));
  const needed = paths.filter((path) => !/\/(man|locale)\/|\/extension\/(?!plpgsql)/.test(path));
  const data = await Promise.all(needed.map(async (path) => ({ from: await realpath(path), to: inImage(path) })));
  const modules = MODULES.map((name) => join(version, "lib", name));
  const { ref } = await packNodeApp({
    out: join(ROOT, ".build/test-postgres"),
    inputs: [import.meta.filename],
    libraryPath: libraryPath(),
    programs: {
      "bin/sh": await realpath("/bin/sh"),
      [inImage(join(bin, "postgres"))]: join(bin, "postgres"),
      [inImage(join(bin, "initdb"))]: join(bin, "initdb"),
    },
    config: {
      User: "app",
      Env: [`PATH=/usr/bin:/bin:/${inImage(bin)}`],
      Entrypoint: ["/bin/sh", "-c", START],
      WorkingDir: "/",
      // Waits for nobody's session, and leaves the cluster in order.
      StopSignal: "SIGINT",
    },
    files: async () => [...data, ...modules.map((path) => ({ from: path, to: inImage(path), mode: 0o755 }))],
  });
  return ref;
}
