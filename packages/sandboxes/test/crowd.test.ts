/** A client that follows more programs than its share of what the port carries out at once, and others who ask meanwhile. */
import { expect, onTestFinished, test, vi } from "vitest";
import { askFrom } from "../../platform/test/helpers/slow-client.ts";
import { enveloped, openPort } from "./port.ts";
import { inside, newTenant } from "./tenant.ts";

/** Of which a client that is alone gets half. */
const REQUESTS = 8;

test("one client's streams leave places for others, and end with their connections", async () => {
  const port = await openPort({ requests: REQUESTS });
  onTestFinished(() => port.close());
  const { running, token, key } = await newTenant(port, "shop");
  const url = `http://127.0.0.1:${port.port}`;
  const follow = () =>
    askFrom("127.0.0.3", `${url}/process.Process/Start`, {
      method: "POST",
      headers: { "content-type": "application/connect+json", ...inside(running, token) },
      body: enveloped({ process: { cmd: "stay" } }),
    });
  const list = (from: string) => askFrom(from, `${url}/sandboxes`, { headers: { "x-api-key": key } });
  const programs = () => port.done.filter(({ task }) => task === undefined).length;
  const before = programs();
  const streams = Array.from({ length: REQUESTS / 2 }, follow);
  await vi.waitFor(() => expect(programs()).toBe(before + REQUESTS / 2));

  const refused = await list("127.0.0.3").answer;
  expect(refused).toMatchObject({ status: 429, headers: { "retry-after": "1" } });
  expect(JSON.parse(refused.body)).toMatchObject({ code: 429, message: expect.stringContaining("Too many requests") });
  expect((await follow().answer).status).toBe(429);
  expect((await list("127.0.0.2").answer).status).toBe(200);

  for (const stream of streams) stream.leave();
  await vi.waitFor(async () => expect((await list("127.0.0.3").answer).status).toBe(200));
});
