/** What each part of a service becomes, and what is said of the parts that cannot be carried. */
import { expect, test } from "vitest";
import { withExposed } from "../src/index.ts";
import { planOf, serviceIn, troubles } from "./disk.ts";

/** The configuration of the service `a` with these lines. */
const one = (service: string, rest = "") => {
  const found = planOf(`services:\n  a: ${service}\n${rest}`);
  return { ...serviceIn(found, "a"), troubles: troubles(found) };
};
const SLEEP = { autostop: "suspend", idle: "quiet", idle_timeout: 300 };

test("the first published port that speaks HTTP is the hostname's, others are TCP, and the rest is for the project", () => {
  const {
    config,
    ports,
    troubles: told,
  } = one('{image: i, ports: ["5432", "15432:5432", "8080:3000", "9000:9001"], expose: [7000, 3000]}');
  expect(told).toEqual([]);
  expect(ports.http?.internal).toBe(3000);
  expect(config.services).toEqual([
    { protocol: "http", internal_port: 3000, ...SLEEP },
    { protocol: "tcp", internal_port: 5432, ports: [{ port: 15432 }], ...SLEEP },
    { protocol: "tcp", internal_port: 9001, ports: [{ port: 9000 }], ...SLEEP },
    { protocol: "tcp", internal_port: 7000, ...SLEEP },
  ]);
});

test("x-hibernaut says what a compose file has no words for", () => {
  const { config } = one(
    '{image: i, ports: ["5000:5000"], x-hibernaut: {http: false, idle_timeout: 1m30s, autostop: stop}}',
  );
  expect(config.services).toEqual([
    {
      protocol: "tcp",
      internal_port: 5000,
      ports: [{ port: 5000 }],
      autostop: "stop",
      idle: "quiet",
      idle_timeout: 90,
    },
  ]);
  expect(one("{image: i, x-hibernaut: {sleep: never}}").troubles).toEqual([
    "error: services.a.x-hibernaut.sleep: The key is unknown. There are http, idle_timeout, autostop and worker.",
  ]);
});

test("an image that everybody knows has its port and its memory; others say theirs once they are here", () => {
  expect(one("{image: 'docker.io/library/postgres:16@sha256:00'}").ports.inside).toEqual([5432]);
  expect(one("{image: 'mysql:8'}").config.guest).toEqual({ memory_mb: 768 });
  const unknown = one("{image: 'registry.example.com:5000/team/ml'}");
  expect(unknown.config.services).toBeUndefined();
  expect(withExposed(unknown, [3003]).config.services).toEqual([{ protocol: "tcp", internal_port: 3003, ...SLEEP }]);
});

test("a file outside of the project is told, and a link to one is a warning, wherever it goes into a machine", () => {
  const compose = (from: string) => `
services: {a: {image: i, env_file: ${from}/e, secrets: [s], configs: [c], volumes: ["${from}/m:/m"]}}
secrets: {s: {file: ${from}/s}}
configs: {c: {file: ${from}/c}}
`;
  const names = ["e", "s", "c", "m"];
  const files = (from: string) => Object.fromEntries(names.map((name) => [`${from}/${name}`, "A=1"]));
  const told = (found: ReturnType<typeof planOf>, severity: string) =>
    found.findings.filter((each) => each.severity === severity && each.message.includes("outside of the project"));
  const elsewhere = planOf(compose("/root/.ssh"), files("/root/.ssh"));
  expect(told(elsewhere, "note")).toHaveLength(4);
  expect(told(elsewhere, "warning")).toEqual([]);
  const own = { ...files("/srv/shop"), "/srv/shop/.env": "A=1" };
  expect(told(planOf(compose("."), own), "note")).toEqual([]);
  const links = Object.fromEntries(
    ["e", "s", "c", "m", ".env"].map((name) => [`/srv/shop/${name}`, "/root/.ssh/id_rsa"]),
  );
  const linked = told(planOf(compose("."), own, {}, links), "warning");
  expect(linked.map(({ path }) => path)).toEqual([
    "",
    "services.a.volumes",
    "services.a.secrets",
    "services.a.configs",
    "services.a.env_file",
  ]);
  expect(linked[1]?.message).toBe(
    "/srv/shop/m is a link to /root/.ssh/id_rsa, which is outside of the project's directory, and a service gets what is in it.",
  );
});

test("UDP is left out, and what the host has for itself stays at its port", () => {
  expect(
    one('{image: i, ports: ["53:53/udp", "127.0.0.1:3000:3000", {target: 80, published: "8000-8001", protocol: udp}]}')
      .troubles,
  ).toEqual([
    "warning: services.a.ports: Port 53/udp is left out: nothing but TCP can wake a machine.",
    "warning: services.a.ports: Port 80/udp is left out: nothing but TCP can wake a machine.",
  ]);
});

test.each([
  ["curl -f http://localhost:3000/health || exit 1", { type: "http", port: 3000, path: "/health" }],
  ["curl -s --noproxy localhost localhost:3000/live | grep -q OK", { type: "http", port: 3000, path: "/live" }],
  ["wget -q --spider http://127.0.0.1/ping", { type: "http", port: 80, path: "/ping" }],
  ["pg_isready -U shop", { type: "tcp", port: 3000 }],
  ["curl -kf https://localhost:3000/", { type: "tcp", port: 3000 }],
])("the health check `%s` becomes the nearest check", (command, check) => {
  const { config } = one(
    `{image: i, ports: ["3000:3000"], healthcheck: {test: ${JSON.stringify(command)}, interval: 1m, start_period: 90s, timeout: 200ms}}`,
  );
  expect(config.checks).toEqual({ health: { ...check, interval: "60s", timeout: "1s", grace_period: "90s" } });
});

test("one without a port, or none, becomes nothing", () => {
  expect(one("{image: i, healthcheck: {test: [CMD, check]}}").troubles).toEqual([
    expect.stringContaining("counts as healthy once it runs"),
  ]);
  for (const check of ["{test: NONE}", "{disable: true, test: x}", "{disable: false}"])
    expect(one(`{image: i, healthcheck: ${check}}`)).toMatchObject({
      troubles: [],
      config: { restart: { policy: "no" } },
    });
});

test("limits, restarts, stops, users and commands keep their meaning", () => {
  expect(
    one(
      "{image: i, mem_limit: 1g, cpus: 1.5, restart: 'on-failure:3', stop_signal: INT, stop_grace_period: 1m30s, user: '1000:1000', working_dir: /app, entrypoint: 'sh -c \"a && b\"'}",
    ).config,
  ).toEqual({
    guest: { memory_mb: 1024, cpus: 2 },
    restart: { policy: "on-failure", max_retries: 3 },
    stop_config: { signal: "SIGINT", timeout: 90 },
    init: { user: "1000:1000", working_dir: "/app", entrypoint: ["sh", "-c", "a && b"], cmd: [] },
    keep_layer: true,
  });
  const { config } = one(
    "{image: i, restart: unless-stopped, deploy: {resources: {limits: {memory: 192M, cpus: '0.5'}}}}",
  );
  expect(config).toMatchObject({ guest: { memory_mb: 192, cpus: 1 }, restart: { policy: "always" } });
});

test("a limit that no machine can have is raised, or refused before anything is made", () => {
  expect(one("{image: i, mem_limit: 64m}").config.guest).toEqual({ memory_mb: 128 });
  expect(planOf("services: {a: {image: i, mem_limit: 64m}}").findings).toContainEqual({
    severity: "note",
    path: "services.a",
    message: "A machine has at least 128 MB of memory: its kernel needs some of it.",
  });
  expect(one("{image: i, mem_limit: 64g, cpus: 1000}").troubles).toEqual([
    "error: services.a: A machine has at most 32768 MB of memory.",
    expect.stringMatching(/^error: services\.a: A machine has at most \d+ CPUs\.$/),
  ]);
});

test("volumes and files are carried; directories, sockets and shared volumes are refused with what to do", () => {
  const found = planOf(
    `
services:
  a:
    image: i
    volumes:
      - "Data-Dir:/data"
      - "/cache"
      - ./conf/app.toml:/etc/app.toml:ro
      - {type: volume, source: big, target: /big}
      - {type: tmpfs, target: /scratch}
      - ./html:/html
      - /var/run/docker.sock:/var/run/docker.sock
      - ./later.conf:/etc/later.conf
  b: {image: i, volumes: ["Data-Dir:/data"]}
volumes: {Data-Dir: , big: {x-hibernaut: {size: 20gb}}}
`,
    { "/srv/shop/conf/app.toml": "a = 1\n", "/srv/shop/html/index.html": "" },
  );
  const { config } = serviceIn(found, "a");
  expect(config.mounts).toEqual([
    { volume: "data_dir", path: "/data" },
    { volume: "cache", path: "/cache" },
    { volume: "big", path: "/big", size_gb: 20 },
  ]);
  expect(config.files).toEqual([{ guest_path: "/etc/app.toml", raw_value: Buffer.from("a = 1\n").toString("base64") }]);
  const told = troubles(found).join("\n");
  expect(told).toContain("warning: services.a.volumes: /scratch is left out");
  expect(told).toContain("error: services.a.volumes: ./html is a directory of this computer");
  expect(told).toContain("/var/run/docker.sock is the socket of a container engine");
  expect(told).toContain("./later.conf does not exist");
  expect(told).toContain("error: services.b.volumes: The volume Data-Dir is used by a");
});

test("a port on the loopback is not the hostname's, unless the file says so", () => {
  const { ports, config } = one('{image: i, ports: ["127.0.0.1:3000:3000", "[::1]:4000:4000"]}');
  expect(ports).toEqual({
    tcp: [
      { internal: 3000, published: 3000, isLocal: true },
      { internal: 4000, published: 4000, isLocal: true },
    ],
    inside: [],
  });
  expect(config.services?.every(({ protocol }) => protocol === "tcp")).toBe(true);
  expect(one('{image: i, ports: ["127.0.0.1:3000:3000"], x-hibernaut: {http: 3000}}').ports.http?.internal).toBe(3000);
});

test("modes are octal as people write them, and two secrets never share a name", () => {
  const file = (secrets: string) => `
services: {a: {image: i, secrets: ${secrets}}}
secrets: {db.pw: {environment: A}, db-pw: {environment: B}}`;
  const modes = planOf(
    file(
      '[{source: db-pw, mode: 0440}, {source: db-pw, target: b, mode: "0400"}, {source: db-pw, target: c, mode: 0o444}]',
    ),
    {},
    { environment: { A: "1", B: "2" } },
  );
  expect(serviceIn(modes, "a").config.files?.map(({ mode }) => mode?.toString(8))).toEqual(["440", "400", "444"]);
  const both = planOf(file("[db.pw, db-pw]"), {}, { environment: { A: "1", B: "2" } });
  expect(troubles(both).join("\n")).toContain("would both be called FILE_DB_PW");
});

test("a key that is spelled in another way is told, with the one that was meant", () => {
  expect(troubles(planOf("services: {a: {image: i, depend_on: [b], enviroment: {A: 1}}, b: {image: i}}"))).toEqual([
    "warning: services.a.depend_on: Left out: the key is unknown. Did you mean depends_on?",
    "warning: services.a.enviroment: Left out: the key is unknown. Did you mean environment?",
  ]);
});

test("keys that all objects have are keys like others", () => {
  const found = planOf(
    "services: {a: {image: constructor, constructor: 1, toString: 2, depends_on: {b: {condition: constructor}}, secrets: [valueOf], volumes: ['hasOwnProperty:/d']}, b: {image: i, environment: {X: $constructor}}}",
  );
  expect(troubles(found)).toEqual([
    "warning: services.b.environment.X: The variable constructor is not set, and counts as empty. Set it in .env, or write ${constructor:-default}.",
    "warning: services.a.constructor: Left out: the key is unknown.",
    "warning: services.a.toString: Left out: the key is unknown.",
    "error: services.a.secrets: `valueOf` is not defined at the top level of the file.",
    "error: services.a.depends_on.b: There is no condition constructor.",
  ]);
});

test("secrets stay secrets, and configs become files", () => {
  const found = planOf(
    `
services:
  a:
    image: i
    secrets: [db-password, {source: token, target: /etc/token, mode: "0400"}, elsewhere]
    configs: [{source: site, target: /etc/site.conf}]
secrets: {db-password: {file: ./pw.txt}, token: {environment: TOKEN}, elsewhere: {external: true}}
configs: {site: {content: "port 80"}}
`,
    { "/srv/shop/pw.txt": "hunter2" },
    { environment: { TOKEN: "t" } },
  );
  const { config, secrets } = serviceIn(found, "a");
  expect(secrets).toEqual([
    { name: "FILE_DB_PASSWORD", value: Buffer.from("hunter2").toString("base64") },
    { name: "FILE_TOKEN", value: Buffer.from("t").toString("base64") },
    { name: "FILE_ELSEWHERE", value: undefined },
  ]);
  expect(config.files).toEqual([
    { guest_path: "/run/secrets/db-password", secret_name: "FILE_DB_PASSWORD" },
    { guest_path: "/etc/token", secret_name: "FILE_TOKEN", mode: 0o400 },
    { guest_path: "/run/secrets/elsewhere", secret_name: "FILE_ELSEWHERE" },
    { guest_path: "/etc/site.conf", raw_value: Buffer.from("port 80").toString("base64") },
  ]);
  expect(JSON.stringify(config)).not.toContain(Buffer.from("hunter2").toString("base64"));
});

test("each comes after what it depends on; a job that others wait for runs once", () => {
  const { plan } = planOf(`
services:
  web: {image: w, ports: ["80:80"], depends_on: {migrate: {condition: service_completed_successfully}, cache: {condition: service_started, required: false}}}
  migrate: {image: w, expose: [80], restart: always, depends_on: {db: {condition: service_healthy}}}
  db: {image: postgres}
`);
  expect(plan?.apps.map(({ service, runsOnce }) => [service, runsOnce])).toEqual([
    ["db", false],
    ["migrate", true],
    ["web", false],
  ]);
  expect(plan?.apps[1]?.config).toMatchObject({ restart: { policy: "no" } });
  expect(plan?.apps[1]?.config.services).toBeUndefined();
});

/** The ports of the service `jobs`, once its image has said that it listens at 3000. */
const jobs = (services: string) => {
  const found = planOf(`services: {${services}}`, { "/srv/shop/Dockerfile": "FROM debian\nEXPOSE 3000\n" });
  return withExposed(serviceIn(found, "jobs"), [3000]).ports.inside;
};

test.each([
  [
    "the image of a web server with a command of its own",
    "web: {image: i, ports: ['80:3000']}, jobs: {image: i, command: work}",
  ],
  ["the same, where the web server is what the image runs", "web: {image: i}, jobs: {image: i, entrypoint: [work]}"],
  ["the same, built", "web: {build: ., expose: [3000]}, jobs: {build: ., command: work}"],
  ["its own word", "jobs: {image: j, x-hibernaut: {worker: true}}"],
])("a worker listens nowhere, whatever its image exposes: by %s", (_why, services) => {
  expect(jobs(services)).toEqual([]);
});

test.each([
  ["an image of its own", "jobs: {image: j, command: work}"],
  ["no command of its own", "web: {image: i, ports: ['80:3000']}, jobs: {image: i}"],
  [
    "a service that needs it",
    "web: {image: i, ports: ['80:3000'], depends_on: [jobs]}, jobs: {image: i, command: work}",
  ],
  [
    "a service that is linked to it",
    "web: {image: i, ports: ['80:3000'], links: ['jobs:j']}, jobs: {image: i, command: work}",
  ],
  ["its word", "web: {image: i}, jobs: {image: i, command: work, x-hibernaut: {worker: false}}"],
])("a service with %s is believed", (_why, services) => {
  expect(jobs(services)).toEqual([3000]);
});

test("two servers of one well-known image both listen, and a worker with ports is refused", () => {
  const found = planOf("services: {a: {image: redis}, jobs: {image: redis, command: --port 6379}}");
  expect(serviceIn(found, "jobs").ports.inside).toEqual([6379]);
  expect(one("{image: i, expose: [1], x-hibernaut: {worker: true}}").troubles).toEqual([
    "error: services.a.x-hibernaut.worker: A worker listens nowhere. Remove `ports` and `expose`, or `worker`.",
  ]);
});

test("a plan says that a worker stays awake, and why it is taken for one", () => {
  const { findings } = planOf("services: {web: {image: i, ports: ['80:3000']}, jobs: {image: i, command: work}}");
  expect(findings).toEqual([
    {
      severity: "note",
      path: "services.jobs",
      message:
        "It runs the image of web with a command of its own, and no service needs it: it counts as a worker, which listens nowhere and stays awake. If it listens, add `expose`. If it waits for jobs over a connection to another service, `x-hibernaut: {autostop: suspend}` lets it sleep.",
    },
  ]);
});

test("a worker sleeps if the file says so, and only then", () => {
  const worker = (own: string) => {
    const found = planOf(`services: {a: {image: i, x-hibernaut: {worker: true, ${own}}}}`);
    return {
      idle: serviceIn(found, "a").config.worker_idle_timeout,
      said: found.findings.map(({ message }) => message),
    };
  };
  expect([worker("idle_timeout: 1m").idle, worker("autostop: off").idle]).toEqual([undefined, undefined]);
  const useless = "It has no effect: a worker sleeps only with `autostop: suspend` as well";
  expect(worker("idle_timeout: 1m").said).toContainEqual(expect.stringContaining(useless));
  expect(worker("autostop: off, idle_timeout: 1m").said).not.toContainEqual(expect.stringContaining(useless));
  expect(worker("autostop: suspend, idle_timeout: 1m")).toEqual({
    idle: 60,
    said: [
      "A worker: it sleeps when nothing has passed through its connections to other services for 60 s, and wakes with what comes over one.",
    ],
  });
  expect(worker("autostop: stop").said).toContain(
    "A worker that is stopped has nothing to wake by. Write suspend or off.",
  );
  const taken = planOf(
    "services: {web: {image: i, ports: ['80:3000']}, jobs: {image: i, command: work, x-hibernaut: {autostop: stop}}}",
  );
  expect(taken.findings.map(({ message }) => message)).toContain(
    "A worker that is stopped has nothing to wake by. Write suspend or off. If the service listens, add `expose`.",
  );
  expect(planOf("services: {a: {image: i, x-hibernaut: {autostop: suspend}}}").findings[0]?.message).toMatch(
    /add `expose`\. If it waits for jobs .* `x-hibernaut: \{worker: true, autostop: suspend\}` lets it sleep\.$/,
  );
});

test("a worker that another service depends on is told, and nothing that is needed is taken for one", () => {
  const found = (own: string) =>
    planOf(`services: {web: {image: i, expose: [1], depends_on: [queue]}, queue: {image: j${own}}}`).findings.map(
      ({ severity, message }) => `${severity}: ${message}`,
    );
  expect(found(", x-hibernaut: {worker: true}")).toContain(
    "warning: Another service depends on it, and reaches no port of a worker. If it listens, say where with `expose`, in place of `worker`.",
  );
  expect(found("")).toEqual([expect.stringMatching(/^note: Nothing here says where it listens\..* add `expose`\.$/)]);
});

test("a service is found by every name that its file gives it", () => {
  const found = planOf(`
services:
  My_DB: {image: postgres, container_name: pg, hostname: db.local, networks: {back: {aliases: [primary]}}}
  web: {image: w, links: ["My_DB:old_name"]}
`);
  expect(serviceIn(found, "My_DB")).toMatchObject({
    app: "shop-my-db",
    aliases: ["my_db", "pg", "db.local", "primary", "old_name"],
  });
});

test("two services whose apps would have one name are refused", () => {
  expect(troubles(planOf("services: {a-b: {image: i}, a_b: {image: i}}")).join("\n")).toContain(
    "Its app would be called shop-a-b",
  );
});

test("nothing is dropped in silence: every other key is told, with the reason", () => {
  const found = planOf(
    "services: {a: {image: i, privileged: true, devices: [/dev/kvm], sysctls: {}, colour: red, x-mine: 1}}",
  );
  expect(
    found.findings.filter(({ path }) => path !== "services.a").map(({ severity, path }) => `${severity} ${path}`),
  ).toEqual([
    "note services.a.privileged",
    "warning services.a.devices",
    "warning services.a.sysctls",
    "warning services.a.colour",
  ]);
});
