/** What goes wrong with a request on its way, or what a client does to make it so. */
import { gzipSync } from "node:zlib";
import type { Random } from "../../api/test/random.ts";
import { type Asked, DOMAIN } from "./port.ts";

/** What is sent, and the form that errors have where it goes. */
export interface WildRequest extends Asked {
  route: string;
  form: "control" | "connect" | "port";
}

/** Some are read as something else than a path. */
export const PATHS = [
  "/",
  "//",
  "//:99999/",
  "/%2e%2e/files",
  "http://x/files",
  "http://[/",
  "*",
  "/health/..",
  "/files/",
  "/__proto__",
];
const HOSTS = [
  "",
  "[",
  ":0",
  "::::",
  "x y",
  `${"a".repeat(300)}.${DOMAIN}`,
  `99999-x.${DOMAIN}`,
  `.${DOMAIN}`,
  DOMAIN,
  "é",
];
const TYPES = [
  "",
  "text/plain",
  "application/json; charset=utf-16",
  "a/b/c",
  "application/grpc",
  "application/proto",
  "multipart/form-data",
  "multipart/form-data; boundary=x",
  "application/connect+proto",
  "application/x-www-form-urlencoded",
];
const ODD_HEADERS: readonly (readonly [string, string | string[]])[] = [
  ["content-encoding", "gzip"],
  ["connect-content-encoding", "gzip"],
  ["connect-protocol-version", "9"],
  ["connect-timeout-ms", "-1"],
  ["connect-timeout-ms", "99999999999"],
  ["authorization", "Basic !!!"],
  ["authorization", `Basic ${Buffer.from("\0../x:y").toString("base64")}`],
  ["keepalive-ping-interval", "1e-9"],
  ["x-metadata-a", "é"],
  ["x-metadata-__proto__", "x"],
  ["x-forwarded-proto", "javascript"],
  ["accept-encoding", "gzip;q=0, *"],
  ["range", "bytes=9-1"],
  ["expect", "nothing"],
  ["origin", "null"],
  ["e2b-sandbox-port", "65536"],
  ["e2b-sandbox-port", "-1"],
  ["x-api-key", ["a", "b"]],
  ["x-access-token", ["a", "b"]],
  ["upgrade", "websocket"],
];
/** Larger than any route takes, in bytes. */
const TOO_LARGE = 5 * 1024 * 1024;
const BOMB = gzipSync(Buffer.alloc(TOO_LARGE * 4));

/** Breaks something of a request, of half of them. */
export function unsettled(request: WildRequest, random: Random): WildRequest {
  if (random.oneIn(2)) return request;
  const { headers = {}, body } = request;
  const bytes = Buffer.from(body ?? "");
  switch (random.below(7)) {
    case 0:
      return { ...request, headers: { ...headers, "content-type": random.pick(TYPES) } };
    case 1: {
      const [name, value] = random.pick(ODD_HEADERS);
      const upgrade = name === "upgrade" ? { connection: "upgrade" } : {};
      return { ...request, headers: { ...headers, ...upgrade, [name]: value } };
    }
    case 2:
      return { ...request, headers: { ...headers, host: random.pick(HOSTS).replace("é", "\u00e9") } };
    case 3:
      return { ...request, route: `${request.route.split(" ")[0]} ${random.pick(PATHS)}` };
    case 4:
      return { ...request, body: bytes.subarray(0, random.below(bytes.length + 1)) };
    case 5:
      return { ...request, ...oddBody(bytes, headers, random) };
    default:
      return { ...request, headers: { ...headers, ...manyHeaders(random) } };
  }
}

function oddBody(bytes: Buffer, headers: Asked["headers"], random: Random): Asked {
  const giant = Buffer.from([random.pick([0, 1, 2, 3, 255]), 255, 255, 255, 255, ...bytes]);
  const zipped = { ...headers, "content-encoding": "gzip", "connect-content-encoding": "gzip" };
  return random.pick<() => Asked>([
    () => ({ body: Buffer.alloc(random.oneIn(8) ? TOO_LARGE : 2 * 1024 * 1024, "[") }),
    () => ({ body: "[".repeat(50_000) }),
    () => ({ body: giant }),
    () => ({ body: Buffer.concat([bytes, Buffer.from([0, 0, 0])]) }),
    () => ({ body: random.oneIn(4) ? BOMB : gzipSync(bytes), headers: zipped }),
    () => ({ body: Buffer.concat([Buffer.from([1, 0, 0]), uint16(BOMB.length), BOMB]), headers: zipped }),
    () => ({ body: '{"__proto__":{"count":1},"constructor":{"prototype":{}}}' }),
    () => ({ body: "not json" }),
  ])();
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function manyHeaders(random: Random): Record<string, string> {
  const count = random.pick([50, 900, 2500]);
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-metadata-${index}`, "x"]));
}
