/** What is decided about webhooks, without sending anything. */
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EVENT_GROUPS, type StreamEvent } from "@hibernaut/domain/stream-event";
import { isPublicAddress, networkList } from "@hibernaut/lib/public-addresses";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { Lanes } from "../../src/webhooks/lanes.ts";
import { deliveryOf, gapDelivery, wants } from "../../src/webhooks/message.ts";
import { failureText, outcomeOf, RETRY_S, retryAfterMs, waitAfter } from "../../src/webhooks/rules.ts";
import { newSecret, signedHeaders } from "../../src/webhooks/signing.ts";
import { refusedUrl } from "../../src/webhooks/target.ts";

const HOUR_MS = 3_600_000;
const refused = (retryAfter?: string) => ({ status: 503, retryAfter });

describe("retries", () => {
  test("begin after 5 s and last more than a day, and less than 30 hours", () => {
    const span = (random: number) => {
      let sum = 0;
      for (let attempts = 1; ; attempts += 1) {
        const wait = waitAfter(attempts, refused(), { now: 0, random });
        if (wait === undefined) return sum;
        sum += wait;
      }
    };
    expect(waitAfter(1, refused(), { now: 0, random: 0 })).toBe(5_000);
    expect(span(0)).toBeGreaterThan(24 * HOUR_MS);
    expect(span(1)).toBeLessThan(30 * HOUR_MS);
    expect(waitAfter(RETRY_S.length + 1, refused(), { now: 0, random: 0 })).toBeUndefined();
  });

  test.each([
    ["60", 60_000],
    ["Sat, 31 Jan 2026 12:02:00 GMT", 120_000],
    // Sooner than the schedule, nothing, and a year.
    ["1", 5_000],
    ["soon", 5_000],
    ["31536000", 10 * HOUR_MS],
  ])("Retry-After: %s is respected within bounds", (header, wait) => {
    const now = Date.parse("2026-01-31T12:00:00Z");
    expect(waitAfter(1, refused(header), { now, random: 0 })).toBe(wait);
    expect(retryAfterMs(undefined, now)).toBeUndefined();
  });

  test("only 2xx is a delivery, 410 ends the webhook, and a redirect is a failure with advice", () => {
    const outcome = (status: number) => outcomeOf({ status, retryAfter: undefined });
    expect([200, 204, 299].map(outcome)).toEqual(["delivered", "delivered", "delivered"]);
    expect([199, 301, 404, 500].map(outcome)).toEqual(["refused", "refused", "refused", "refused"]);
    expect(outcome(410)).toBe("gone");
    expect(failureText({ status: 302, retryAfter: undefined })).toMatch(/do not follow\. Change the webhook's URL/);
    expect(failureText({ status: 201, retryAfter: undefined })).toBeNull();
  });
});

describe("signatures", () => {
  test("are what the standard's own example says", () => {
    // From the documentation of the first service that signed like this.
    const at = 1_614_265_330_000;
    const message = { messageId: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: '{"test": 2432232314}' };
    expect(signedHeaders(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], message, at)).toEqual({
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  test("are the HMAC of id, time and body, one for each secret, and the library accepts either", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.json(), (id, body) => {
        const [secret, former] = [newSecret(), newSecret()];
        const now = Date.now();
        const headers = signedHeaders([secret, former], { messageId: `msg_${id}`, body }, now);
        const [, mine] = headers["webhook-signature"]?.split(" ") ?? [];
        const key = Buffer.from(former.slice("whsec_".length), "base64");
        const signed = `msg_${id}.${Math.floor(now / 1000)}.${body}`;
        expect(key).toHaveLength(32);
        expect(mine).toBe(`v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
        for (const one of [secret, former]) expect(new Webhook(one).verify(body, headers)).toEqual(JSON.parse(body));
        expect(() => new Webhook(newSecret()).verify(body, headers)).toThrow(/No matching signature/);
      }),
      { numRuns: 50 },
    );
  });
});

describe("where webhooks may lead", () => {
  const strict = { privateAddresses: false, http: false, blocked: networkList([]) };

  test.each([
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://0.0.0.0/",
    "https://10.1.2.3/",
    "https://172.16.0.1/",
    "https://192.168.1.1:8443/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.100.100.200/",
    "https://168.63.129.16/machine?comp=goalstate",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[::127.0.0.1]/",
    "https://[fd00:ec2::254]/",
    "https://[fe80::1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://localhost/",
    "https://app.localhost:8080/",
    "https://localhost./",
  ])("%s is refused, with the setting that allows it", (url) => {
    expect(refusedUrl(url, strict)).toMatch(/webhooks may not reach.*HIBERNAUT_WEBHOOK_PRIVATE_ADDRESSES=allow/);
    expect(refusedUrl(url, { ...strict, privateAddresses: true })).toBeUndefined();
  });

  test("an address of a blocked network is refused, even where private ones are allowed", () => {
    const policy = {
      ...strict,
      privateAddresses: true,
      blocked: networkList(["203.0.113.0/24", "10.1.2.3", "fd00:7::/32"]),
    };
    for (const host of ["203.0.113.9", "10.1.2.3", "[fd00:7::1]", "[::ffff:10.1.2.3]"])
      expect(refusedUrl(`https://${host}/`, policy), host).toContain("HIBERNAUT_BLOCKED_NETWORKS");
    expect(refusedUrl("https://10.1.2.4/", policy)).toBeUndefined();
  });

  test.each([
    ["http://example.com/", /HIBERNAUT_WEBHOOK_HTTP=allow/],
    ["ftp://example.com/", /not a valid https address/],
    ["example.com/hook", /not a valid https address/],
    ["https://example.com/#a", /fragment/],
    [`https://example.com/${"a".repeat(2000)}`, /up to 2000/],
  ])("%s is refused", (url, why) => {
    expect(refusedUrl(url, strict)).toMatch(why);
  });

  test("public addresses and names are not", () => {
    for (const url of ["https://example.com/a?b=c", "https://8.8.8.8/", "https://[2606:4700::1111]/"])
      expect(refusedUrl(url, strict)).toBeUndefined();
    expect(isPublicAddress("fe80::1%eth0")).toBe(false);
    expect(isPublicAddress("2606:4700::1111")).toBe(true);
    expect(isPublicAddress("nonsense")).toBe(false);
  });
});

describe("what a webhook gets", () => {
  const event: StreamEvent = {
    ...{
      sequence: 7,
      at: "2026-01-31T12:00:00.000Z",
      type: "machine.suspended",
      app: "shop",
      machine: "3f9c01ab22de41",
    },
    data: { name: "web", to: "suspended" },
  };
  const all = { id: "wh_1", events: [], apps: null };

  test("its types, of its apps, until they end, and nothing about itself", () => {
    expect(wants(all, event)).toBe(true);
    expect(wants({ ...all, events: ["machine"] }, event)).toBe(true);
    expect(wants({ ...all, events: ["machine.running", "app"] }, event)).toBe(false);
    const limited = { ...all, apps: [{ name: "shop", since: 6, until: null }] };
    expect(wants(limited, event)).toBe(true);
    expect(wants(limited, { ...event, app: "bank" })).toBe(false);
    expect(wants(limited, { ...event, app: null })).toBe(false);
    expect(wants({ ...all, apps: [{ name: "shop", since: 7, until: null }] }, event)).toBe(false);
    expect(wants({ ...all, apps: [{ name: "shop", since: 0, until: 7 }] }, event)).toBe(true);
    expect(wants({ ...all, apps: [{ name: "shop", since: 0, until: 6 }] }, event)).toBe(false);
    const about = (id: string) => ({ ...event, type: "webhook.disabled", app: null, data: { webhook_id: id } });
    expect(wants(all, about("wh_1"))).toBe(false);
    expect(wants(all, about("wh_2"))).toBe(true);
  });

  test("type, timestamp and data, and an id that no other event has, even with the same number", () => {
    const { body, messageId, lane } = deliveryOf(event);
    expect(body).toBe(
      '{"type":"machine.suspended","timestamp":"2026-01-31T12:00:00.000Z","data":{"name":"web","to":"suspended","sequence":7,"app_name":"shop","machine_id":"3f9c01ab22de41"}}',
    );
    expect(lane).toBe("3f9c01ab22de41");
    expect(messageId).toBe(deliveryOf(event).messageId);
    expect(messageId).not.toBe(deliveryOf({ ...event, at: "2026-01-31T12:00:01.000Z" }).messageId);
    expect(JSON.parse(gapDelivery({ after: 3, until: 9 }, event.at).body)).toEqual({
      ...{ type: "gap", timestamp: event.at },
      data: { after: 3, until: 9 },
    });
  });
});

test("every type of event in the documentation begins with a known group, and each group is there", () => {
  const text = readFileSync(join(import.meta.dirname, "../../../../docs/events.md"), "utf8");
  const [, table = ""] = text.split("\n## Types\n");
  const rows = [...(table.split("\n## ")[0] ?? "").matchAll(/^\| `(\w+)\./gm)].map(([, group]) => group);
  expect(new Set(rows)).toEqual(new Set(EVENT_GROUPS));
});

describe("lanes", () => {
  const NAMES = ["a", "b", "c"];

  test("are in order, hold only themselves, and lose nothing", () => {
    const step = fc.record({ lane: fc.constantFrom(...NAMES), fails: fc.boolean(), both: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const lanes = new Lanes();
        for (const [sequence, { lane }] of steps.entries()) lanes.add({ sequence, lane, attempts: 0, nextAt: 0 });
        const taken: { sequence: number; lane: string }[] = [];
        let now = 0;
        for (let round = 0; lanes.size > 0; round += 1) {
          const first = lanes.take(now);
          if (first === undefined) {
            now = lanes.nextDue() ?? now;
            continue;
          }
          // Another lane may be taken while this one is busy.
          const second = steps[round % steps.length]?.both === true ? lanes.take(now) : undefined;
          if (second !== undefined) expect(second.lane).not.toBe(first.lane);
          for (const [index, one] of [first, second].entries()) {
            if (one === undefined) continue;
            if (steps[(round + index) % steps.length]?.fails === true && one.attempts < 3)
              lanes.retry(one.lane, { nextAt: now + 10, attempts: one.attempts + 1 });
            else {
              lanes.done(one.lane);
              taken.push(one);
            }
          }
        }
        expect(taken).toHaveLength(steps.length);
        for (const name of NAMES) {
          const own = taken.filter(({ lane }) => lane === name).map(({ sequence }) => sequence);
          expect(own).toEqual(own.toSorted((one, other) => one - other));
        }
      }),
    );
  });

  test("what failed while the receiver was away is due when it answers, and what it refuses is not", () => {
    const lanes = new Lanes();
    for (const [sequence, lane] of ["refused", "away"].entries()) lanes.add({ sequence, lane, attempts: 0, nextAt: 0 });
    const fail = () => {
      const { lane = "", attempts = 0 } = lanes.take(0) ?? {};
      lanes.retry(lane, { nextAt: 1000, attempts: attempts + 1 });
      return lane;
    };
    expect(fail()).toBe("refused");
    lanes.answered(0);
    // Once, because it may have been away; it is refused again.
    expect(fail()).toBe("refused");
    expect(fail()).toBe("away");
    lanes.answered(0);
    expect(lanes.take(0)?.lane).toBe("away");
    expect(lanes.take(0)).toBeUndefined();
    expect(lanes.nextDue()).toBe(1000);
  });
});
