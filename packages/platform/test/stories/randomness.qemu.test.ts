/**
 * What programs draw after a sleep: nothing that they, or a machine of the same image, have drawn before.
 *
 * @module-tag again
 */
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

test("machines of one image, and one machine before and after a sleep, draw other random bytes every time", async () => {
  const drawn: string[] = [];
  const drawInside = async (id: string) => {
    const command = ["sh", "-c", "head -c 32 /dev/urandom | sha256sum"];
    const { stdout } = await place.client.runExec(place.app, id, { command });
    expect(stdout).toMatch(/^[0-9a-f]{64}/);
    drawn.push(stdout);
  };
  const [one, other] = await Promise.all([
    place.machine({ image, init: { exec: ["node", "-e", APP] } }),
    place.machine({ image, init: { cmd: ["-c", "exec sleep 3600"] }, services: [] }),
  ]);
  const drawAll = async () => {
    const fromApp = drawnBy(one.private_address);
    await Promise.all([drawInside(one.id), drawInside(other.id), fromApp]);
    expect(await fromApp).toMatch(/^[0-9a-f]{64}$/);
    drawn.push(await fromApp);
  };
  await drawAll();
  for (const { id } of [one, other]) {
    await place.suspend(id);
    await place.start(id);
  }
  await drawAll();
  expect(drawn).toHaveLength(6);
  expect(new Set(drawn).size).toBe(drawn.length);
});
