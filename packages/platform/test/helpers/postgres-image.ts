/** An image with PostgreSQL that keeps its data on a volume at `$DATA`, which is `/data`, packed from this machine's own programs. */
import { execFile } from "node:child_process";
import { appendFile, readdir, realpath } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { packNodeApp } from "../../../../scripts/lib/node-image.mjs";
import { libraryPath, toolEnvironment } from "../../../../scripts/lib/test-tools.mjs";
import { findPrograms, unprivileged } from "../../../../services/orders/test/postgres/server.ts";
import { imageFolder } from "./projects/images.ts";

const run = promisify(execFile);

/** All that a server loads, with the extension that the orders service needs. */
const MODULES = ["plpgsql.so", "dict_snowball.so", "pg_trgm.so"];

/** As the user `app`: unpacks the cluster at the first start. What is lost later was on the disk then. */
const START = `
set -e
if [ ! -s "$DATA/pg/PG_VERSION" ]; then
  tar -C "$DATA" -xf /cluster.tar
  sync
fi
exec postgres -D "$DATA/pg" -c listen_addresses=* -c unix_socket_directories= -c fsync=on -c shared_buffers=16MB -c max_connections=20
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
  const needed = paths.filter((path) => !/\/(man|locale)\/|\/extension\/(?!plpgsql|pg_trgm)/.test(path));
  const data = await Promise.all(needed.map(async (path) => ({ from: await realpath(path), to: inImage(path) })));
  const modules = MODULES.map((name) => join(version, "lib", name));
  const { ref } = await packNodeApp({
    out: imageFolder("postgres"),
    inputs: [import.meta.filename],
    bare: true,
    libraryPath: libraryPath(),
    programs: {
      "bin/sh": await realpath("/bin/sh"),
      "bin/tar": await realpath("/bin/tar"),
      "bin/sync": await realpath("/bin/sync"),
      [inImage(join(bin, "postgres"))]: join(bin, "postgres"),
    },
    config: {
      User: "app",
      Env: [`PATH=/usr/bin:/bin:/${inImage(bin)}`, "DATA=/data"],
      ExposedPorts: { "5432/tcp": {} },
      Entrypoint: ["/bin/sh", "-c", START],
      WorkingDir: "/",
      // Waits for nobody's session, and leaves the cluster in order.
      StopSignal: "SIGINT",
    },
    files: async (work) => [
      { from: await packCluster(work, join(bin, "initdb")), to: "cluster.tar" },
      ...data,
      ...modules.map((path) => ({ from: path, to: inImage(path), mode: 0o755 })),
    ],
  });
  return ref;
}

/** Makes a cluster that lets everybody in, as an archive of a directory `pg`: under emulation, `initdb` takes half a minute. */
async function packCluster(work: string, initdb: string): Promise<string> {
  const data = join(work, "pg");
  const cluster = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
  // The zone that a server knows without files. The write-ahead log has 16 MB otherwise.
  await run(...unprivileged([], initdb, [...cluster, "--wal-segsize=1"]), {
    cwd: work,
    env: { ...toolEnvironment(), TZ: "GMT" },
  });
  await appendFile(join(data, "pg_hba.conf"), "host all all all trust\n");
  const archive = join(work, "cluster.tar");
  await run("tar", ["-C", work, "-cf", archive, "pg"]);
  return archive;
}
