/** Which machine a request asks for: a table of hostnames and headers. */
import { describe, expect, test } from "vitest";
import { type Addressed, addressOf } from "../src/addressing.ts";
import { machineHostOf } from "../src/routing.ts";

describe("a machine's hostname", () => {
  test.each<[string, [app: string, label: string] | undefined]>([
    ["web.shop.localhost", ["shop", "web"]],
    ["web.shop.localhost.", ["shop", "web"]],
    ["3f9c01ab22de41.shop.apps.example.org", ["shop", "3f9c01ab22de41"]],
    ["9090--web.shop.localhost", ["shop", "9090--web"]],
    ["a-b--c.my-shop.localhost", ["my-shop", "a-b--c"]],
    ["shop.localhost", undefined],
    ["one.two.shop.localhost", undefined],
    [".shop.localhost", undefined],
    ["web..localhost", undefined],
    ["web.shop.localhost..", undefined],
    ["localhost", undefined],
    ["web.shop.elsewhere", undefined],
    ["web.shoplocalhost", undefined],
    ["127.0.0.1", undefined],
    ["", undefined],
  ])("%s", (host, parts) => {
    const expected = parts && { app: parts[0], label: parts[1] };
    expect(machineHostOf(host, ["localhost", "apps.example.org"])).toEqual(expected);
  });
});

const machine = (id: string, name: string, ownPorts = [8080, 9090]) => ({ id, name, policy: { port: 8080, ownPorts } });
const web = machine("3f9c01ab22de41", "web");
const dashed = machine("3f9c01ab22de42", "a-b--c");
const posing = machine("3f9c01ab22de43", "9090--web");
const numeric = machine("3f9c01ab22de44", "3000");
const closed = machine("3f9c01ab22de45", "closed", []);
const second = machine("3f9c01ab22de46", "second", [9090]);
/** Its name is another machine's id. */
const thief = machine("3f9c01ab22de47", web.id);

const find = (all: (Addressed & { name: string })[]) => (word: string) =>
  all.find(({ id }) => id === word) ?? all.find(({ name }) => name === word);
const fields = (given: Record<string, string>) =>
  Object.entries(given).map(([name, value]) => ({ name, key: name.toLowerCase(), value }));
const MACHINES = [thief, web, dashed, numeric, closed, second];

const only = (found: Addressed, port = 8080) => ({ kind: "machine", machine: found, port, only: true });

describe("the label of a hostname", () => {
  test.each<[string, object]>([
    ["web", only(web)],
    [web.id, only(web)],
    ["3f9c01", { kind: "unknown", word: "3f9c01" }],
    ["3f9c01ab22de4", { kind: "unknown", word: "3f9c01ab22de4" }],
    ["a-b--c", only(dashed)],
    ["9090--a-b--c", only(dashed, 9090)],
    ["9090--web", only(web, 9090)],
    ["8080--web", only(web)],
    ["8080--second", { kind: "closed", machine: second, port: 8080 }],
    ["second", { kind: "closed", machine: second, port: 8080 }],
    ["9090--second", only(second, 9090)],
    ["closed", { kind: "closed", machine: closed, port: 8080 }],
    ["7070--web", { kind: "closed", machine: web, port: 7070 }],
    ["99999--web", { kind: "closed", machine: web, port: 99_999 }],
    ["09090--web", { kind: "unknown", word: "09090--web" }],
    ["0--web", { kind: "unknown", word: "0--web" }],
    ["--web", { kind: "unknown", word: "--web" }],
    ["9090--", { kind: "unknown", word: "9090--" }],
    ["9090-web", { kind: "unknown", word: "9090-web" }],
    ["9090--nobody", { kind: "unknown", word: "nobody" }],
    ["9090--9090--web", { kind: "unknown", word: "9090--web" }],
    ["3000", only(numeric)],
    ["9090--3000", only(numeric, 9090)],
    ["constructor", { kind: "unknown", word: "constructor" }],
  ])("%s", (label, expected) => {
    expect(addressOf(label, [], find(MACHINES))).toEqual(expected);
  });

  test("that is the whole name of a machine means that machine", () => {
    expect(addressOf("9090--web", [], find([web, posing]))).toEqual(only(posing));
    expect(addressOf("9090--9090--web", [], find([web, posing]))).toEqual(only(posing, 9090));
  });
});

describe("headers", () => {
  test.each<[Record<string, string>, string | undefined, object | undefined]>([
    [{}, undefined, undefined],
    [{ Accept: "text/html" }, undefined, undefined],
    [{ "Hibernaut-Machine": "web" }, undefined, only(web)],
    [{ "Hibernaut-Machine": "WEB" }, undefined, only(web)],
    [{ "fly-force-instance-id": web.id }, undefined, only(web)],
    [{ "fly-force-instance-id": "nobody" }, undefined, { kind: "unknown", word: "nobody" }],
    [{ "Hibernaut-Machine": "" }, undefined, { kind: "unknown", word: "" }],
    [{ "Hibernaut-Machine": "9090--web" }, undefined, { kind: "unknown", word: "9090--web" }],
    [{ "Hibernaut-Machine": "closed" }, undefined, { kind: "closed", machine: closed, port: 8080 }],
    [{ "fly-prefer-instance-id": web.id }, undefined, { ...only(web), only: false }],
    [{ "fly-prefer-instance-id": "nobody" }, undefined, undefined],
    [{ "fly-prefer-instance-id": "closed" }, undefined, undefined],
    [{ "fly-prefer-instance-id": dashed.id, "Hibernaut-Machine": "web" }, undefined, only(web)],
    [{ "fly-prefer-instance-id": dashed.id }, "web", only(web)],
    [{ "Hibernaut-Machine": "web", "fly-force-instance-id": web.id }, undefined, only(web)],
    [{ "Hibernaut-Machine": "web", "fly-force-instance-id": dashed.id }, undefined, { kind: "conflict" }],
    [{ "fly-force-instance-id": web.id }, "9090--web", only(web, 9090)],
    [{ "fly-force-instance-id": web.id }, "a-b--c", { kind: "conflict" }],
    [{ "fly-force-instance-id": web.id }, "nobody", { kind: "unknown", word: "nobody" }],
    [{ "fly-force-instance-id": "nobody" }, "web", { kind: "unknown", word: "nobody" }],
  ])("%j with the label %s", (given, label, expected) => {
    expect(addressOf(label, fields(given), find(MACHINES))).toEqual(expected);
  });
});
