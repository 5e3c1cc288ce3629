/**
 * Keys of app files that reach into real machines: files, and the command of a release.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { Notes } from "../helpers/notebook.ts";
import { Place } from "../helpers/served.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";

const place = Place.forTests();

const base64 = (text: string) => Buffer.from(text).toString("base64");

test("a file from a secret is there before the app starts, belongs to its user, and is new after every cold start", async () => {
  await place.client.setSecrets(place.app, { NOTES: base64("from the secret\n") });
  // More than one frame of the agent's channel, and nothing that a text could hold.
  const large = Buffer.from(Array.from({ length: 150_000 }, (_, index) => index % 251)).toString("base64");
  const machine = await place.machine({
    // The app runs as user 1000, and the permissions of a secret's file are 0600.
    files: [
      { guest_path: "/etc/notes/today", secret_name: "NOTES" },
      { guest_path: "/opt/large", raw_value: large },
    ],
    init: { cmd: ["--notes", "/etc/notes/today"] },
  });
  expect(machine).toMatchObject({ state: "running", state_reason: null });
  const { machine_id: id } = machine;
  const notes = new Notes(machine.private_address);
  expect(await notes.all()).toEqual(["from the secret"]);
  await notes.add("from the app");
  await place.suspend(id);
  await place.start(id);
  expect((await place.get(id)).last_boot?.kind).toBe("resume");
  expect(await notes.all(), "a sleep keeps what the app made of it").toEqual(["from the secret", "from the app"]);

  await place.client.setSecrets(place.app, { NOTES: base64("another\n") });
  await place.client.restartMachine(place.app, id);
  await place.reach(id, "running");
  expect(await notes.all()).toEqual(["another"]);
});

test("a release command runs in a machine of its own, which is gone when it has failed", {
  tags: "again",
}, async () => {
  const { client, app } = place;
  const before = await client.listMachines(app);
  const image = SMALL_APP;
  const { version } = await client.createRelease(app, { image });
  const lines: string[] = [];
  const config = { image, init: { cmd: ["--say", "migrating", "--fail", "3"] } };
  const end = await client.runReleaseCommand(app, version, config, { onLine: ({ text }) => lines.push(text) });
  expect(end).toEqual({ ok: false, exit_code: 3, reason: "it exited with code 3" });
  expect(lines).toContain("migrating");
  await client.updateRelease(app, version, { status: "failed" });
  const ids = async () => (await client.listMachines(app)).map(({ id }) => id);
  await expect.poll(ids).toEqual(before.map(({ id }) => id));
});
