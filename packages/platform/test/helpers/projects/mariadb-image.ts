/** An image with MariaDB that keeps its data in `/var/lib/mysql`, packed from this machine's own programs. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { packNodeApp } from "../../../../../scripts/lib/node-image.mjs";
import { findTool, libraryPath, toolEnvironment } from "../../../../../scripts/lib/test-tools.mjs";
import { imageFolder } from "./images.ts";

/** The files of a small server: it is unpacked at each first start. */
const SIZES = ["--innodb-data-file-path=ibdata1:10M:autoextend", "--innodb-log-file-size=4M"];
const SMALL = [
  ...SIZES,
  ...["--innodb-temp-data-file-path=ibtmp1:2M:autoextend", "--innodb-buffer-pool-size=8M", "--performance-schema=OFF"],
];
/** What makes the tables of the server itself, in this order. */
const TABLES = ["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"];

/** Unpacks the data at the first start. What is lost later was on the disk then. Words after it are options of the server. */
const START = `
set -e
if [ ! -d /var/lib/mysql/mysql ]; then
  tar -C /var/lib/mysql --strip-components=1 -xf /data.tar
  sync
fi
exec mariadbd --no-defaults --user=app --datadir=/var/lib/mysql --socket=/tmp/mysql.sock ${SMALL.join(" ")} "$@"
`;

/** Packs it, unless it is there, and returns its reference. The user `app` with this password has the database `app`. */
export async function mariadbImage(): Promise<string> {
  const server = findTool("mariadbd");
  const share = join(dirname(dirname(server)), "share/mysql");
  const texts = ["english", "charsets"];
  const shared = await Promise.all(
    texts.map(async (folder) => {
      const names = await readdir(join(share, folder));
      return names.map((name) => ({ from: join(share, folder, name), to: `usr/share/mysql/${folder}/${name}` }));
    }),
  );
  const { ref } = await packNodeApp({
    out: imageFolder("mariadb"),
    inputs: [import.meta.filename],
    bare: true,
    libraryPath: libraryPath(),
    programs: {
      "bin/sh": await realpath("/bin/sh"),
      "bin/tar": await realpath("/bin/tar"),
      "bin/sync": await realpath("/bin/sync"),
      "usr/sbin/mariadbd": server,
    },
    config: {
      User: "app",
      Env: ["PATH=/usr/sbin:/usr/bin:/bin"],
      Entrypoint: ["/bin/sh", "-c", START, "mariadbd"],
      ExposedPorts: { "3306/tcp": {} },
      WorkingDir: "/",
    },
    files: async (work) => [{ from: await packData(work, { server, share }), to: "data.tar" }, ...shared.flat()],
  });
  return ref;
}

/** Makes the data of an empty server, as an archive of a directory. */
async function packData(work: string, { server, share }: { server: string; share: string }): Promise<string> {
  const data = join(work, "data");
  await mkdir(data);
  const tables = await Promise.all(TABLES.map((name) => readFile(join(share, name), "utf8")));
  const statements = [
    "CREATE DATABASE mysql;\nUSE mysql;",
    ...tables,
    "CREATE DATABASE app;\nFLUSH PRIVILEGES;\nGRANT ALL ON *.* TO app@'%' IDENTIFIED BY 'app';\n",
  ].join("\n");
  const places = [
    "--user=root",
    `--datadir=${data}`,
    `--lc-messages-dir=${share}`,
    `--character-sets-dir=${share}/charsets`,
  ];
  const child = spawn(server, ["--no-defaults", "--bootstrap", ...places, ...SIZES], {
    env: toolEnvironment(),
    stdio: ["pipe", "ignore", "pipe"],
  });
  child.stderr.setEncoding("utf8");
  let said = "";
  child.stderr.on("data", (text: string) => {
    said += text;
  });
  child.stdin.end(statements);
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(`MariaDB made no database: ${said}`);
  const archive = join(work, "data.tar");
  await promisify(execFile)("tar", ["-C", work, "-cf", archive, "data"]);
  return archive;
}
