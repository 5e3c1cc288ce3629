/** What programs draw after a sleep: nothing that they, or a machine of the same image, have drawn before. */
import { expect, test } from "vitest";
import { askUntilAnswered } from "../helpers/qemu-world.ts";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const place = Place.forTests();
const image = await shellImage();

const APP = `
  const { randomBytes } = require("crypto");
  randomBytes(1000); // whatever is kept ahead is kept from now on
  require("http").createServer((request, response) => response.end(JSON.stringify({
    random: randomBytes(32).toString("hex"),
  }))).listen(8080);
`;

async function drawnBy(address: string): Promise<string> {
  const { random } = (await askUntilAnswered(address)) as unknown as { random: string };
  return random;
}

async function machine(): Promise<{ id: string; address: string }> {
  const made = await place.machine({ image, init: { exec: ["node", "-e", APP] } });
  return { id: made.machine_id, address: made.private_address };
}

test("machines of one image, and one machine before and after a sleep, draw other random bytes every time", async () => {
  const drawn: string[] = [];
  const draw = async ({ id, address }: { id: string; address: string }) => {
    const command = ["sh", "-c", "head -c 32 /dev/urandom | sha256sum"];
    const [app, fresh] = await Promise.all([drawnBy(address), place.client.runExec(place.app, id, { command })]);
    expect(app).toMatch(/^[0-9a-f]{64}$/);
    expect(fresh.stdout).toMatch(/^[0-9a-f]{64}/);
    drawn.push(app, fresh.stdout);
  };
  const both = await Promise.all([machine(), machine()]);
  await Promise.all(
    both.map(async (one) => {
      await draw(one);
      await place.suspend(one.id);
      await place.start(one.id);
      await draw(one);
    }),
  );
  expect(drawn).toHaveLength(8);
  expect(new Set(drawn).size).toBe(drawn.length);
});
