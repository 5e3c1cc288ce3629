/** The projects that are measured, with the images of the tests: Debian's own programs, and the small app. */
import { nginxConf } from "../../packages/platform/test/helpers/projects/images.ts";

/** Nothing sleeps by itself while it is measured. */
const AWAKE = "x-hibernaut: {idle_timeout: 1h}";

/**
 * Eight services, as a larger project has them: a front, what it asks, a cache, a database, and some next to them.
 *
 * @param {Record<"nginx" | "small" | "caddy" | "redis" | "postgres", string>} images
 */
export function eight({ nginx, small, caddy, redis, postgres }) {
  const own = (/** @type {string} */ more = "") =>
    `{image: "${small}", expose: [8080], mem_limit: 128m, ${more}${AWAKE}}`;
  return {
    "compose.yaml": `
services:
  front: {image: "${nginx}", ports: ["8080:80"], volumes: ["./nginx.conf:/etc/nginx/nginx.conf"], depends_on: [api, docs], ${AWAKE}}
  api: ${own("depends_on: [db, cache], ")}
  db: {image: "${postgres}", volumes: ["rows:/data"], ${AWAKE}}
  cache: {image: "${redis}", ${AWAKE}}
  docs: {image: "${caddy}", command: respond --listen :6061 documents, expose: [6061], ${AWAKE}}
  search: ${own()}
  mail: ${own()}
  status: ${own()}
volumes: {rows: {}}
`,
    "nginx.conf": nginxConf(
      "location / { proxy_pass http://api:8080; } location /docs { proxy_pass http://docs:6061; }",
    ),
  };
}

/**
 * A web server, an app in Node, and a database that each request writes to.
 *
 * @param {Record<"nginx" | "orders" | "postgres", string>} images
 */
export function threeTiers({ nginx, orders, postgres }) {
  return {
    "compose.yaml": `
services:
  web: {image: "${nginx}", ports: ["8080:80"], volumes: ["./nginx.conf:/etc/nginx/nginx.conf"], depends_on: [app], ${AWAKE}}
  app:
    image: ${orders}
    expose: [3000]
    environment: {DB_HOST: db, DB_USER: postgres, DB_PASSWORD: unused, DB_NAME: postgres, DB_TIMEOUT_MS: "30000", DB_START_TIMEOUT_MS: "90000"}
    depends_on: [db]
    ${AWAKE}
  db: {image: "${postgres}", volumes: ["rows:/data"], ${AWAKE}}
volumes: {rows: {}}
`,
    "nginx.conf": nginxConf("location / { proxy_pass http://app:3000; }"),
  };
}
