/**
 * What apps answer that send a request on, as bytes, and what becomes of the request: a table of awkward cases, through
 * the engine with its broker. Nothing to compare with serves this; the rules are in docs/proxy.md.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { askRaw, NamesWorld, said } from "./names-world.ts";

const ANNA = "3f9c01ab22de41";
const BOX = { machine_hostnames: true, replay_from: ["router"], placement: "pinned" as const };

let world: NamesWorld;
/** What the router answers, as bytes. */
let routed = "";
/** What the machine of app `echo` answers: where it sends everything on to. */
let echoed = "";
let echoes = () => echoed;

beforeAll(async () => {
  world = new NamesWorld();
  await world.add({ app: "router", id: "3f9c01ab22de10", name: "r1", says: () => routed });
  await world.add({ app: "users", id: ANNA, name: "anna", service: BOX });
  await world.add({ app: "users", id: "3f9c01ab22de42", name: "bob", service: BOX });
  await world.add({ app: "users", id: "3f9c01ab22de43", name: "private", service: { ...BOX, replay_from: [] } });
  await world.add({ app: "foreign", id: "3f9c01ab22de44", name: "carla" });
  const friends = { replay_from: ["router", "echo"] };
  await world.add({ app: "echo", id: "3f9c01ab22de45", name: "e1", service: friends, says: () => echoes() });
  await world.start();
});
afterAll(() => world.stop());
beforeEach(() => {
  world.heads.length = 0;
  echoes = () => echoed;
});

const request = (method = "GET", fields = "", body = "") =>
  `${method} /a?b HTTP/1.1\r\nHost: router.localhost\r\n${fields}Connection: close\r\n\r\n${body}`;
/** An answer with these lines in its head. */
const sends = (lines: string) => said("wrong", lines);

/** The value of `Fly-Replay-Src` that the last machine got, without the time. */
function source(): string | undefined {
  const [, head = ""] = world.heads.at(-1) ?? [];
  return /^Fly-Replay-Src: (.*)$/im.exec(head)?.[1]?.replace(/;t=\d{16}/, "");
}

const FROM = "instance=3f9c01ab22de10;app=router";
const LONG = "s".repeat(20_000);

describe("an answer with", () => {
  test.each<[lines: string, outcome: string, source?: string]>([
    ["Fly-Replay: app=users;instance=anna\r\n", "200 anna", FROM],
    [`fly-replay: app=users;instance=${ANNA}\r\n`, "200 anna", FROM],
    [`FLY-REPLAY:\t APP=Users ; Instance = ${ANNA.toUpperCase()} ;;\r\n`, "200 anna", FROM],
    ["Hibernaut-Replay: app=users;instance=anna\r\nFly-Replay: app=users;instance=bob\r\n", "200 anna", FROM],
    ["Fly-Replay: app=users;instance=bob\r\nHibernaut-Replay: app=users;instance=anna\r\n", "200 anna", FROM],
    // Names that are not whole, not here, or not allowed.
    [`Fly-Replay: app=users;instance=${ANNA.slice(0, 13)}\r\n`, "502 replay_unknown_machine"],
    ["Fly-Replay: app=users;instance=carla\r\n", "502 replay_unknown_machine"],
    ["Fly-Replay: instance=anna\r\n", "502 replay_unknown_machine"],
    ["Fly-Replay: app=users;instance=private\r\n", "502 replay_not_allowed"],
    ["Fly-Replay: app=foreign\r\n", "502 replay_not_allowed"],
    ["Fly-Replay: app=foreign;instance=nobody\r\n", "502 replay_not_allowed"],
    ["Fly-Replay: app=ghost\r\n", "502 replay_unknown_app"],
    ["Fly-Replay: app=__proto__\r\n", "502 replay_unknown_app"],
    ["Fly-Replay: app=users.localhost\r\n", "502 replay_unknown_app"],
    ["Fly-Replay: app=us\xe9rs\r\n", "502 replay_unknown_app"],
    // Orders that cannot be followed.
    ["Fly-Replay:\r\n", "502 replay_invalid"],
    ["Fly-Replay: ;;;\r\n", "502 replay_invalid"],
    ["Fly-Replay: anna\r\n", "502 replay_invalid"],
    ["Fly-Replay: =anna\r\n", "502 replay_invalid"],
    ["Fly-Replay: app=;instance=anna\r\n", "502 replay_invalid"],
    ["Fly-Replay: app=users;instance=\r\n", "502 replay_invalid"],
    ["Fly-Replay: state=only\r\n", "502 replay_invalid"],
    ["Fly-Replay: region=fra\r\n", "502 replay_invalid"],
    ["Fly-Replay: elsewhere=true\r\n", "502 replay_invalid"],
    ["Fly-Replay: app=users;instance=anna;instance=bob\r\n", "502 replay_invalid"],
    ["Fly-Replay: app=users;instance=anna\r\nFly-Replay: app=users;instance=anna\r\n", "502 replay_invalid"],
    ['Fly-Replay: {"app":"users"}\r\n', "502 replay_invalid"],
    // A state may be nearly anything, and arrives as it is.
    ["Fly-Replay: app=users;instance=anna;state=\r\n", "200 anna", `${FROM};state=`],
    ['Fly-Replay: app=users;instance=anna;state= a=b, "c"\\ \r\n', "200 anna", `${FROM};state=a=b, "c"\\`],
    ["Fly-Replay: state=caf\xe9\xff\x80;app=users;instance=anna\r\n", "200 anna", `${FROM};state=caf\xe9\xff\x80`],
    ["Fly-Replay: app=users;instance=anna;state=a\tb\r\n", "200 anna", `${FROM};state=a\tb`],
    [`Fly-Replay: app=users;instance=anna;state=${LONG}\r\n`, "200 anna", `${FROM};state=${LONG}`],
    ["Fly-Replay: app=users;instance=anna;state=a;b\r\n", "502 replay_invalid"],
    ["Fly-Replay: app=users;instance=anna;state=a%0d%0aX: y\r\n", "200 anna", `${FROM};state=a%0d%0aX: y`],
    // What would be another field, or no field at all, for the machine that gets it.
    ["Fly-Replay: app=users;instance=anna;state=a\rX: y\r\n", "502 upstream_invalid"],
    ["Fly-Replay: app=users;instance=anna;state=a\0b\r\n", "502 upstream_invalid"],
    ["Fly-Replay: app=users;instance=anna;\r\n state=folded\r\n", "502 upstream_invalid"],
    ["Fly-Replay : app=users;instance=anna\r\n", "502 upstream_invalid"],
    // Names that only look like it.
    ["Fly_Replay: app=users;instance=anna\r\n", "200 wrong"],
    ["X-Fly-Replay: app=users;instance=anna\r\n", "200 wrong"],
  ])("%j: %s", async (lines, outcome, expected) => {
    routed = sends(lines);
    const { outcome: got, text } = await askRaw(world.port, request());
    expect(got).toBe(outcome);
    expect(source()).toBe(expected);
    if (!outcome.endsWith("wrong")) expect(text).not.toMatch(/wrong|^(fly|hibernaut)-replay/im);
  });
});

const REPLAY = "Fly-Replay: app=users;instance=anna\r\n";

describe("an answer that sends a request on", () => {
  test.each<[what: string, answer: string, outcome: string, method?: string]>([
    ["is an error otherwise", `HTTP/1.1 500 Oops\r\n${REPLAY}Content-Length: 5\r\n\r\nwrong`, "200 anna"],
    ["has no body", `HTTP/1.1 204 No Content\r\n${REPLAY}\r\n`, "200 anna"],
    ["says not modified", `HTTP/1.1 304 Not Modified\r\n${REPLAY}\r\n`, "200 anna"],
    [
      "comes in chunks",
      `HTTP/1.1 200 OK\r\n${REPLAY}Transfer-Encoding: chunked\r\n\r\n5\r\nwrong\r\n0\r\n\r\n`,
      "200 anna",
    ],
    [
      "is longer than anyone waits for",
      `HTTP/1.1 200 OK\r\n${REPLAY}Content-Length: 99999999\r\n\r\n${"x".repeat(40_000)}`,
      "200 anna",
    ],
    ["redirects as well", `HTTP/1.1 307 See\r\nLocation: /wrong\r\n${REPLAY}Content-Length: 0\r\n\r\n`, "200 anna"],
    ["names it in an interim response only", `HTTP/1.1 103 Early Hints\r\n${REPLAY}\r\n${said("mine")}`, "200 mine"],
    [
      "names it in a trailer only",
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Fly-Replay\r\n\r\n4\r\nmine\r\n0\r\n${REPLAY}\r\n`,
      "200 4\r\nmine\r\n0",
    ],
    ["is one to HEAD", `HTTP/1.1 200 OK\r\n${REPLAY}Content-Length: 5\r\n\r\n`, "200", "HEAD"],
  ])("and %s", async (_what, answer, outcome, method = "GET") => {
    routed = answer;
    const { outcome: got, text } = await askRaw(world.port, request(method));
    expect(got).toBe(outcome);
    expect(text).not.toMatch(/wrong|Location|^fly-replay/im);
  });

  test("leaves the method, the target and the body as they were", async () => {
    routed = sends(REPLAY);
    await askRaw(world.port, request("PATCH", "Content-Length: 5\r\nX-One: 1\r\n", "hello"));
    const [, head = ""] = world.heads.at(-1) ?? [];
    expect(head).toMatch(/^PATCH \/a\?b HTTP\/1\.1\r\nHost: router\.localhost\r\n/);
    expect(head).toMatch(/^X-One: 1\r$/m);
  });
});

describe("a loop", () => {
  test("of an app that sends everything to itself ends after ten", async () => {
    routed = sends("Fly-Replay: app=echo\r\n");
    echoed = sends("Fly-Replay: app=echo\r\n");
    const { outcome, text } = await askRaw(world.port, request());
    expect(outcome).toBe("508 replay_loop");
    expect(text).toContain("Apps sent this request on 10 times, and app echo did so once more. Check that");
    expect(world.heads.map(([name]) => name)).toEqual(["r1", ...Array<string>(10).fill("e1")]);
  });

  test("of two apps ends, too, even if both allow it", async () => {
    routed = sends("Fly-Replay: app=echo\r\n");
    echoed = sends("Fly-Replay: app=router\r\n");
    // The router does not say that `echo` may send to it.
    expect((await askRaw(world.port, request())).outcome).toBe("502 replay_not_allowed");
  });

  test("that ends by itself on the tenth is not one", async () => {
    routed = sends("Fly-Replay: app=echo\r\n");
    echoed = sends("Fly-Replay: app=echo\r\n");
    const hops = () => world.heads.filter(([name]) => name === "e1").length;
    echoes = () => (hops() < 10 ? echoed : said("done"));
    expect((await askRaw(world.port, request())).outcome).toBe("200 done");
  });
});
