/**
 * Sleeps under constant traffic: commands, output and the local API at once, and nothing is lost or mixed up.
 *
 * @module-tag again
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { longOr } from "../helpers/long.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const CYCLES = longOr(50, 3);

/** What the app in the machine counts. */
interface Report {
  answers: number;
  faults: string[];
  line: number;
}

let place: Place;
let image: string;
beforeAll(async () => {
  [place, image] = await Promise.all([Place.open(), shellImage()]);
});
afterAll(async () => {
  expect(await place.close()).toEqual(NOTHING_LEFT);
});

/** Prints numbered lines, and reads itself over the local API all the time, counting answers and faults. */
const APP = `
  const http = require("http"), fs = require("fs");
  let line = 0, answers = 0, faults = [];
  setInterval(() => console.log("line " + ++line + " " + "x".repeat(line % 200)), 5);
  const path = "/v1/apps/" + process.env.HIBERNAUT_APP_NAME + "/machines/" + process.env.HIBERNAUT_MACHINE_ID;
  const read = () => http.get({ socketPath: "/.hibernaut/api", path }, (reply) => {
    let text = "";
    reply.on("data", (chunk) => { text += chunk; });
    reply.on("end", () => {
      try { if (JSON.parse(text).machine_id !== process.env.HIBERNAUT_MACHINE_ID) faults.push("another's answer"); answers++; }
      catch (error) { faults.push(error.message + ": " + text.slice(0, 80)); }
      setTimeout(read, 10);
    });
    reply.on("error", (error) => { faults.push(error.message); setTimeout(read, 10); });
  }).on("error", (error) => { faults.push(error.message); setTimeout(read, 10); });
  for (let i = 0; i < 3; i++) read();
  setInterval(() => {
    // Renamed, so that nobody reads half of it.
    fs.writeFileSync("/tmp/report.new", JSON.stringify({ line, answers, faults }));
    fs.renameSync("/tmp/report.new", "/tmp/report");
  }, 50);
`;

test(`streams continue through ${CYCLES} suspends and resumes`, async () => {
  const { machine_id: id } = await place.machine({ image, init: { exec: ["node", "-e", APP] }, services: [] });
  // Without a service a machine runs as soon as its program was executed: Node itself takes seconds more.
  const reported = () => place.client.runExec(place.app, id, { command: ["cat", "/tmp/report"] });
  await expect.poll(async () => (await reported()).exit_code, { timeout: 60_000 }).toBe(0);
  // Echoes numbered lines for as long as the cycles last.
  const session = await place.client.openExec(place.app, id, { command: ["cat"], stdin: true });
  let received = "";
  session.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    received += chunk;
  });
  session.stderr.resume();
  let sent = "";
  let number = 0;
  const feeding = setInterval(() => {
    const piece = `${(number += 1)} ${"y".repeat(number % 500)}\n`;
    sent += piece;
    session.stdin.write(piece);
  }, 5);
  try {
    for (let cycle = 0; cycle < CYCLES; cycle += 1) {
      await place.suspend(id);
      await place.start(id);
      const command = { command: ["sh", "-c", `sleep 0.2; echo ${cycle}; exit ${cycle}`] };
      expect(await place.client.runExec(place.app, id, command)).toMatchObject({
        exit_code: cycle,
        stdout: `${cycle}\n`,
      });
    }
  } finally {
    clearInterval(feeding);
  }
  session.stdin.end();
  expect(await session.exit).toMatchObject({ exit_code: 0, error: null });
  expect(received.length).toBe(sent.length);
  expect(received === sent).toBe(true);
  // Both continue. On a busy host, the guest hardly ran while the machine was suspended and resumed.
  const report = async () => JSON.parse((await reported()).stdout) as Report;
  await expect.poll(async () => (await report()).answers, { timeout: 60_000 }).toBeGreaterThan(CYCLES);
  await expect.poll(async () => (await report()).line, { timeout: 60_000 }).toBeGreaterThan(CYCLES);
  expect((await report()).faults).toEqual([]);
});
