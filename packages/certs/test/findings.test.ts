/** What a name lacks for a certificate, and which records are missing. */
import { publicAddresses } from "@hibernaut/lib/public-addresses";
import { expect, test } from "vitest";
import { type Facts, findingsOf } from "../src/findings.ts";

const READY: Facts = {
  name: "www.example.com",
  challenge: "http-01",
  addresses: ["203.0.113.7"],
  ours: ["203.0.113.7", "2001:db8::7"],
  caa: [],
  caaIdentities: ["letsencrypt.org"],
  unasked: [],
  answers: [{ address: "203.0.113.7", ours: true, found: "" }],
  hook: undefined,
  tls: true,
};

const issue = (value: string, tag = "issue", owner = "example.com") => ({ owner, tag, value });
const WILD = {
  name: "*.example.com",
  challenge: "dns-01" as const,
  addresses: [],
  answers: [],
  hook: "/usr/local/bin/hook",
};

test("nothing is missing where everything is there", () => {
  expect(findingsOf(READY).map(({ what, status }) => [what, status])).toEqual([
    ["authority", "ok"],
    ["dns", "ok"],
    ["port_80", "ok"],
    ["tls", "ok"],
  ]);
  const overTls = findingsOf({ ...READY, challenge: "tls-alpn-01" });
  expect(overTls.map(({ what, status }) => [what, status])).toContainEqual(["port_443", "ok"]);
  expect(findingsOf({ ...READY, ...WILD }).map(({ what, status }) => [what, status])).toEqual([
    ["authority", "ok"],
    ["dns_hook", "ok"],
    ["tls", "ok"],
  ]);
});

test.each<[string, Partial<Facts>, object]>([
  [
    "a name without an address",
    { addresses: [], answers: [] },
    {
      what: "dns",
      status: "missing",
      records: ["www.example.com. 300 IN A 203.0.113.7", "www.example.com. 300 IN AAAA 2001:db8::7"],
    },
  ],
  [
    "a name without an address, and no idea of ours",
    { addresses: [], ours: [], answers: [] },
    { what: "dns", status: "missing", found: expect.stringContaining("HIBERNAUT_PUBLIC_ADDRESSES"), records: [] },
  ],
  [
    "an old AAAA record next to the right address",
    { addresses: ["203.0.113.7", "2001:db8::1"] },
    { what: "dns", status: "missing", found: expect.stringContaining("2001:db8::1, which is not of this host") },
  ],
  ["an address, and no idea of ours", { ours: [] }, { what: "dns", status: "unknown" }],
  ["a resolver that does not answer", { addresses: { unknown: "timeout" } }, { what: "dns", status: "unknown" }],
  [
    "another server at port 80",
    { answers: [{ address: "203.0.113.7", ours: false, found: "the answer has status 404" }] },
    { what: "port_80", status: "missing", found: expect.stringContaining("the answer has status 404") },
  ],
  [
    "another server at port 443",
    {
      challenge: "tls-alpn-01",
      answers: [{ address: "203.0.113.7", ours: false, found: "it shows another certificate" }],
    },
    { what: "port_443", status: "missing", found: expect.stringMatching(/^https:.*HIBERNAUT_PROXY_TLS_LISTEN/) },
  ],
  [
    "CAA records of others",
    { caa: [issue("ca.example.net")] },
    { what: "caa", status: "missing", records: ['example.com. 300 IN CAA 0 issue "letsencrypt.org"'] },
  ],
  [
    "CAA records that forbid all",
    { caa: [issue(";")] },
    { what: "caa", status: "missing", records: ['example.com. 300 IN CAA 0 issue "letsencrypt.org"'] },
  ],
  [
    "CAA records that forbid the wildcard only",
    { ...WILD, caa: [issue("letsencrypt.org"), issue(";", "issuewild")] },
    { what: "caa", status: "missing", records: ['example.com. 300 IN CAA 0 issuewild "letsencrypt.org"'] },
  ],
  ["no answer about CAA", { caa: { unknown: "SERVFAIL" } }, { what: "caa", status: "unknown" }],
  ["a wildcard without a hook", { ...WILD, hook: undefined }, { what: "dns_hook", status: "missing" }],
  [
    "an authority that does not answer",
    { caaIdentities: { unknown: "The authority cannot be reached" } },
    { what: "authority", status: "missing" },
  ],
  ["a proxy without TLS", { tls: false }, { what: "tls", status: "missing" }],
  ["proxies of their own", { tls: undefined }, { what: "tls", status: "unknown" }],
])("%s", (_, more, finding) => {
  const findings = findingsOf({ ...READY, ...more });
  expect(findings.filter(({ status }) => status !== "ok")).toEqual([expect.objectContaining(finding)]);
});

test.each([
  [[issue("letsencrypt.org")]],
  [[issue("ca.example.net"), issue("LetsEncrypt.org; accounturi=https://x/1")]],
  [[issue(";", "issuewild")]],
  [[issue("mailto:a@example.com", "iodef")]],
])("CAA records that allow it are not mentioned: %j", (caa) => {
  expect(findingsOf({ ...READY, caa }).some(({ what }) => what === "caa")).toBe(false);
});

test("only addresses that the internet reaches are public", () => {
  const internal = ["10.1.2.3", "127.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254"];
  const others = ["::1", "fe80::1", "fd00:ec2::254", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "nonsense"];
  others.push("224.0.0.1", "255.255.255.255", "198.18.0.1", "0.0.0.0");
  expect(publicAddresses([...internal, ...others, "203.0.113.7", "172.32.0.1", "2001:db8::7"])).toEqual([
    "203.0.113.7",
    "172.32.0.1",
    "2001:db8::7",
  ]);
});
