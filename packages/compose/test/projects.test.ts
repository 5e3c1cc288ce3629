/** What twelve well-known projects become: which of their services wake by what, and what has to be changed first. */
import { expect, test } from "vitest";
import { planOf, troubles } from "./disk.ts";
import { PROJECTS } from "./projects.ts";

/** What the projects' own instructions have in place before they start. */
const FILES = {
  "/etc/localtime": "TZif2",
  "/srv/shop/config.toml": "[app]\n",
  "/srv/shop/clickhouse/logs.xml": "<clickhouse/>",
  "/srv/shop/postgres/.keep": "",
  "/srv/shop/library/.keep": "",
  "/srv/shop/pgdata/.keep": "",
  "/srv/shop/consume/.keep": "",
};

function read(name: string) {
  const found = planOf(PROJECTS[name] ?? "", FILES, { name });
  const carried = found.plan?.apps.map(({ service, worker, ports: { http, tcp, inside } }) => {
    const ways = [http && `http ${http.internal}`, ...tcp.map(({ published }) => `tcp ${published}`), ...inside];
    return `${service}: ${ways.filter((way) => way !== undefined).join(", ") || (worker === false ? "as its image says" : "nowhere")}`;
  });
  return { carried, errors: troubles(found).filter((line) => line.startsWith("error")) };
}

test.each([
  ["umami", ["db: 5432", "umami: http 3000"]],
  ["listmonk", ["db: tcp 9432", "app: http 9000"]],
  ["plausible", ["plausible_db: 5432", "plausible_events_db: 8123, 9000", "plausible: http 8000"]],
  ["mastodon", ["db: 5432", "redis: 6379", "web: tcp 3000", "sidekiq: nowhere"]],
  ["outline", ["postgres: tcp 5432", "redis: tcp 6379", "outline: http 3000"]],
  [
    "penpot",
    [
      "penpot-postgres: 5432",
      "penpot-redis: 6379",
      "penpot-backend: as its image says",
      "penpot-exporter: as its image says",
      "penpot-frontend: http 80",
      "penpot-mailcatch: http 1080, 1025",
    ],
  ],
  ["gitea", ["db: 5432", "server: http 3000, tcp 222"]],
])("%s is carried as it is", (name, carried) => {
  expect(read(name)).toEqual({ carried, errors: [] });
});

/** Directories of the host, and volumes that two services share, are what people have to change. */
test.each([
  ["immich", [/immich-server.*library is a directory/, /database.*\.\/postgres is a directory/]],
  ["paperless-ngx", [/webserver.*\.\/consume is a directory/]],
  ["linkwarden", [/postgres.*\.\/pgdata is a directory/]],
  ["chatwoot", [/rails.*used by base/, /sidekiq.*used by base/]],
  ["nextcloud", [/cron.*used by app/]],
])("%s needs a change, and is told which", (name, reasons) => {
  const { errors } = read(name);
  expect(errors).toHaveLength(reasons.length);
  for (const reason of reasons) expect(errors.join("\n")).toMatch(reason);
});

test("twelve projects are told of here", () => {
  expect(Object.keys(PROJECTS)).toHaveLength(12);
});
