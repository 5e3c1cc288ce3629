/** Several files, `extends`, profiles and files of variables become one project. */
import { expect, test } from "vitest";
import { planOf, serviceIn, troubles } from "./disk.ts";

const WEB = "services: {web: {image: 'web:1'}}";

test("an override next to the file is laid over it: mappings merge, lists grow, commands are replaced", () => {
  const found = planOf(
    `
services:
  web:
    image: "web:1"
    command: [serve, --slow]
    environment: {A: "1", B: "1"}
    ports: ["3000:3000"]
    volumes: ["data:/data", "old:/cache"]
`,
    {
      "/srv/shop/compose.override.yaml": `
services:
  web:
    command: serve --fast
    environment: ["B=2", "C=3"]
    ports: ["4000:4000"]
    volumes: ["new:/cache"]
`,
    },
  );
  const { config } = serviceIn(found, "web");
  expect(config.init).toEqual({ cmd: ["serve", "--fast"] });
  expect(config.env).toEqual({ A: "1", B: "2", C: "3" });
  expect(config.services?.map(({ internal_port: port }) => port)).toEqual([3000, 4000]);
  expect(config.mounts).toEqual([
    { volume: "data", path: "/data" },
    { volume: "new", path: "/cache" },
  ]);
});

test("named files come in their order, and can take away what is below", () => {
  const files = {
    "/srv/shop/base.yaml": "services: {web: {image: 'web:1', ports: ['80:80'], environment: {A: '1', B: '2'}}}",
    "/srv/shop/prod.yaml": "services: {web: {ports: !reset [], environment: !override {C: '3'}}}",
  };
  const found = planOf("", files, { files: ["base.yaml", "prod.yaml"] });
  const { config } = serviceIn(found, "web");
  expect(config).toMatchObject({ env: { C: "3" } });
  expect(config.services).toBeUndefined();
});

test("a service extends another, of this file or of one elsewhere, whose paths begin there", () => {
  const found = planOf(
    `
services:
  base: {image: "web:1", environment: {A: "1"}}
  web: {extends: base, environment: {B: "2"}}
  job: {extends: {file: ../common/jobs.yaml, service: job}}
`,
    {
      "/srv/common/jobs.yaml": "services: {job: {build: ./job, env_file: job.env, depends_on: [nobody]}}",
      "/srv/common/job.env": "QUEUE=mail\n",
      "/srv/common/job/Dockerfile": "FROM debian\n",
    },
  );
  expect(troubles(found)).toEqual([]);
  expect(serviceIn(found, "web").config.env).toEqual({ A: "1", B: "2" });
  expect(serviceIn(found, "job")).toMatchObject({
    build: { directory: "/srv/common/job" },
    config: { env: { QUEUE: "mail" } },
  });
});

test("anchors and merge keys work, as many files use them", () => {
  const found = planOf(`
x-app: &app {image: "app:1", environment: {TZ: UTC}}
services:
  web: {<<: *app, ports: ["8080:8080"]}
  worker: {<<: *app, command: work}
`);
  expect(serviceIn(found, "worker")).toMatchObject({ image: "app:1", config: { env: { TZ: "UTC" } } });
});

test("variables come from the environment, and then from .env, whose values may use others", () => {
  const file = "services: {web: {image: 'web:${TAG:-1}', environment: {URL: $URL, KEEP: '$$HOME', FROM_SHELL: }}}";
  const env = { "/srv/shop/.env": "ZONE=db\nHOST=${ZONE}\nURL=postgres://${HOST}/shop\nRAW='${HOST}'\nTAG=2\n" };
  const { config, image } = serviceIn(planOf(file, env, { environment: { TAG: "3", FROM_SHELL: "yes" } }), "web");
  expect(image).toBe("web:3");
  expect(config.env).toEqual({ URL: "postgres://db/shop", KEEP: "$HOME", FROM_SHELL: "yes" });
});

test("profiles that are not active leave their services out, and a service that needs one is told so", () => {
  const file = "services: {web: {image: a, depends_on: [mail]}, mail: {image: b, profiles: [full]}}";
  expect(troubles(planOf(file))).toEqual([
    "error: services.web.depends_on: The service mail is part of a profile that is not active. Add --profile.",
  ]);
  expect(planOf(file, {}, { profiles: ["full"] }).plan?.apps).toHaveLength(2);
  expect(planOf(file, {}, { environment: { COMPOSE_PROFILES: "x,full" } }).plan?.apps).toHaveLength(2);
});

test("the project is called as asked, as the file says, or as its directory is", () => {
  expect(planOf(WEB).plan?.name).toBe("shop");
  expect(planOf(`name: My_Shop\n${WEB}`).plan?.name).toBe("my-shop");
  expect(planOf(`name: x\n${WEB}`, {}, { environment: { COMPOSE_PROJECT_NAME: "y" } }).plan?.name).toBe("y");
  expect(planOf(WEB, {}, { name: "z" }).plan?.name).toBe("z");
});

test("a name that has to be cut still differs, and one that was chosen is taken as it is or refused", () => {
  const cut = (name: string) => planOf(`name: ${name}\n${WEB}`).plan?.name ?? "";
  const [blue, green] = ["blue", "green"].map((colour) => cut(`customer-portal-production-env-${colour}`));
  expect(blue).not.toBe(green);
  expect(blue).toMatch(/^customer-portal-product[a-z-]*-[0-9a-f]{6}$/);
  expect(blue).toHaveLength(30);
  expect(troubles(planOf(WEB, {}, { name: "My_Shop" }))).toEqual([
    "error: name: `My_Shop` cannot be the name of a project: use up to 30 lowercase letters, digits and hyphens.",
  ]);
});

test("variables that double each other end in an error, and not in all memory", () => {
  const env = [
    "A=0123456789",
    ...Array.from({ length: 40 }, (_, at) => `A${at}=\${A${at === 0 ? "" : at - 1}}\${A${at === 0 ? "" : at - 1}}`),
  ];
  const lines = troubles(planOf(WEB, { "/srv/shop/.env": env.join("\n") }));
  expect(lines.join("\n")).toMatch(/more than 1000000 characters/);
});

test.each([
  ["services:\n  web: [", /compose\.yaml:2:/],
  ["- a\n- b\n", /not a compose file/],
  ["", /is empty/],
  ["name: x", /no services/],
  ["services: {web: 5}", /A service is a mapping/],
  ["services: {web: {image: '${X:?set it}'}}", /X is required: set it/],
  ["services: {a: {extends: b}, b: {extends: a}}", /extend each other in a circle/],
  ["services: {a: {extends: nobody}}", /no service nobody/],
  ["services: {a: {image: i, depends_on: [b]}, b: {image: i, depends_on: [a]}}", /wait for each other: a, b, a/],
  [
    `a: &a [x,x]\n${Array.from({ length: 30 }, (_, at) => `a${at}: &a${at} [${`*a${at === 0 ? "" : at - 1},`.repeat(9)}]`).join("\n")}`,
    /alias/i,
  ],
])("%j is refused with the reason", (file, reason) => {
  const lines = troubles(planOf(file));
  expect(lines.join("\n")).toMatch(reason);
});

test("a file that someone made to be slow is read in a moment, or refused", () => {
  const many = (count: number, service: (at: number) => string) =>
    `services:\n${Array.from({ length: count }, (_, at) => `  a${at}: ${service(at)}\n`).join("")}`;
  const began = process.cpuUsage();
  const big = `services: {x: {image: i}}\nx-more: [${"1,".repeat(50_000)}1]`;
  const extended = planOf(
    many(200, () => "{extends: {file: big.yaml, service: x}}"),
    { "/srv/shop/big.yaml": big },
  );
  expect(troubles(extended)).toEqual([]);
  expect(extended.plan?.apps).toHaveLength(200);
  expect(troubles(planOf(many(8000, (at) => `{image: i, expose: [80], depends_on: [a${at + 1}]}`)))).toEqual([
    "error: services: A project has at most 250 services.",
  ]);
  const strange = `services: {x: {image: i, expose: [1], ${Array.from({ length: 1000 }, (_, at) => `k${at}: 1`).join(", ")}}}`;
  const unknown = planOf(
    many(200, () => "{extends: {file: strange.yaml, service: x}}"),
    { "/srv/shop/strange.yaml": strange },
  );
  expect(troubles(unknown)).toHaveLength(200_000);
  const check = `{image: i, expose: [80], healthcheck: {test: "${"curl ".repeat(60_000)}"}}`;
  expect(troubles(planOf(`services: {web: ${check}}`))).toEqual([]);
  const dockerfile = `FROM debian\n${"\n".repeat(200_000)}EXPOSE 80\n`;
  const built = planOf("services: {web: {build: .}}", { "/srv/shop/Dockerfile": dockerfile });
  expect(serviceIn(built, "web").ports.inside).toEqual([80]);
  // Its own time, which does not depend on what else the host does. Microseconds.
  expect(process.cpuUsage(began).user).toBeLessThan(10_000_000);
});

test("a file whose aliases stand for more than any memory holds is refused", () => {
  const file = `x-a: &a [${"{a: 1},".repeat(60_000)}]\nx-b: [${"*a,".repeat(150)}]\n${WEB}`;
  expect(troubles(planOf(file))).toEqual(["error: : compose.yaml has more than 100000 values, with its aliases."]);
});

test("a project extends services of at most 100 files", () => {
  const files = Object.fromEntries(
    Array.from({ length: 101 }, (_, at) => [`/srv/shop/${at}.yaml`, "services: {x: {image: i}}"]),
  );
  const services = Array.from({ length: 101 }, (_, at) => `  a${at}: {extends: {file: ${at}.yaml, service: x}}\n`);
  expect(troubles(planOf(`services:\n${services.join("")}`, files))).toEqual([
    "error: : Services of more than 100 files are extended.",
  ]);
});

test("without a file, the advice says how to name one", () => {
  expect(troubles(planOf(WEB, {}, { directory: "/elsewhere" }))).toEqual([
    "error: : There is no compose file in /elsewhere or above it. Name one with --file.",
  ]);
});
