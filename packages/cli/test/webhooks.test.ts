/**
 * `hibernaut webhooks`: what people read, what scripts get, and what a receiver that fails looks like.
 *
 * @module-tag again
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Receiver, soon, withStatus } from "../../events/test/webhooks/receiver.ts";
import { useCli } from "./helpers.ts";

const cli = useCli();
let receiver: Receiver;
beforeAll(async () => {
  receiver = await Receiver.open();
});
afterAll(() => receiver.close());

test("a webhook from its creation to its removal", async () => {
  const made = await cli.hibernaut(`webhooks create ${receiver.url} --event app,hostname --app shop`);
  expect(made.stdout).toMatch(/^whsec_\S+\n$/);
  const [, id = ""] = /^Created webhook (wh_\w+)\. Keep its secret/.exec(made.stderr) ?? [];
  expect((await cli.hibernaut("webhooks list")).stdout).toMatch(
    /^ID +URL +EVENTS +APPS +STATE\nwh_\w+ +http:\S+\/hook +app,hostname +shop +enabled\n$/,
  );
  expect((await cli.hibernaut(`webhooks test ${id}`)).stdout).toMatch(
    /^The receiver answered 200 after \d+ ms: the message arrived\.\n$/,
  );
  await cli.hibernaut("hostnames add www.example.com");
  await receiver.took(2);
  await soon(async () => {
    const { stdout } = await cli.hibernaut(`webhooks log ${id}`);
    expect(stdout).toMatch(/^\d+ +hostname\.added +shop +delivered +1 /m);
  });
  const updated = await cli.json(`webhooks update ${id} --event machine`);
  expect(updated.document).toMatchObject({ id, events: ["machine"], apps: ["shop"] });
  expect((await cli.hibernaut(`webhooks disable ${id}`)).stdout).toContain(`hibernaut webhooks enable ${id}`);
  expect((await cli.hibernaut(`webhooks show ${id}`)).stdout).toMatch(/state +disabled .*\nSomeone disabled it\./);
  expect((await cli.json(`webhooks enable ${id}`)).document).toMatchObject({ disabled_at: null });
  const rotated = await cli.hibernaut(`webhooks rotate ${id} --keep 1h`);
  expect([rotated.stdout, rotated.stderr]).toEqual([
    expect.stringMatching(/^whsec_/),
    expect.stringMatching(/^The old secret signs until \d{4}-.*, too\.\n$/),
  ]);
  expect((await cli.hibernaut(`webhooks show ${id}`)).stdout).toMatch(/^old secret +signs, too, until /m);
  // Nothing is removed without being asked for twice.
  const asked = await cli.hibernaut(`webhooks remove ${id}`);
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringMatching(/Nothing was deleted\. .*Add --yes/) });
  expect((await cli.json(`webhooks remove ${id} --yes`)).document).toEqual({ id, ok: true });
  expect((await cli.hibernaut("webhooks list")).stdout).toBe("No webhooks.\n");
});

test("a test message that does not arrive says why, and the exit code says so", async () => {
  const { document } = await cli.json(`webhooks create ${receiver.url}`);
  receiver.answer = withStatus(301, { location: "http://127.0.0.1/" });
  const failed = await cli.hibernaut(`webhooks test ${document.id}`);
  expect(failed.code).toBe(1);
  expect(failed.stderr).toMatch(
    /did not arrive\. The receiver answered 301, a redirect, .* Change the webhook's URL\./,
  );
  expect(failed.stderr).not.toMatch(/^ +at /m);
  await cli.hibernaut(`webhooks remove ${document.id} --yes`);
});

test.each([
  ["webhooks show wh_none", 1, /There is no webhook wh_none\. `hibernaut webhooks list` shows all\./],
  ["webhooks create example.com", 2, /not a valid https address\. Use one such as/],
  ["webhooks update wh_none", 2, /No change\. Add --url/],
])("%s is refused with advice", async (words, code, advice) => {
  const refused = await cli.hibernaut(words);
  expect(refused).toMatchObject({ code, stderr: expect.stringMatching(advice) });
  expect(refused.stderr).not.toMatch(/^ +at /m);
});
