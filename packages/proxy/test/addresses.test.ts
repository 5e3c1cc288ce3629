import { expect, test } from "vitest";
import { type Front, urlsOf } from "../src/addresses.ts";

const plain = (address: string, port = 8080): Front => ({ scheme: "http", address, port, covers: () => true });
const secure = (address: string, names: string[], port = 443): Front => ({
  scheme: "https",
  address,
  port,
  covers: (name) => names.includes(name),
});
const NAMES = ["www.example.com", "shop.localhost", "shop.apps.example.com"];

test.each([
  ["loopback: the name of this host only", [plain("127.0.0.1")], ["http://shop.localhost:8080/"]],
  ["loopback of IPv6", [plain("::1")], ["http://shop.localhost:8080/"]],
  ["another loopback: no name leads there", [plain("127.0.0.2")], []],
  [
    "all addresses: every name",
    [plain("0.0.0.0")],
    ["http://www.example.com:8080/", "http://shop.localhost:8080/", "http://shop.apps.example.com:8080/"],
  ],
  [
    "one address: all but the names of this host",
    [plain("192.0.2.7", 80)],
    ["http://www.example.com/", "http://shop.apps.example.com/"],
  ],
  [
    "TLS where there is a certificate, and plain where there is none",
    [plain("0.0.0.0", 80), secure("0.0.0.0", ["www.example.com", "shop.localhost"])],
    ["https://www.example.com/", "http://shop.localhost/", "http://shop.apps.example.com/"],
  ],
  [
    "TLS outside, plain on loopback",
    [plain("127.0.0.1"), secure("::", ["www.example.com"], 8443)],
    ["https://www.example.com:8443/", "http://shop.localhost:8080/"],
  ],
  ["no proxy of ours: nothing is known", [], []],
])("%s", (_name, fronts, urls) => expect(urlsOf(NAMES, fronts)).toEqual(urls));
