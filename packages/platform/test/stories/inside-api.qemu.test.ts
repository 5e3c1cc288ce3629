/**
 * What programs inside a machine may ask of the platform, over the socket in their file system.
 *
 * @module-tag again
 */
import type { Machine } from "@hibernaut/client";
import { beforeAll, describe, expect, test } from "vitest";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const place = Place.forTests();
const image = await shellImage();

/** Until Node runs in an emulated machine, with others on the same CPUs. In milliseconds. */
const STARTS_MS = 120_000;

const OPTIONS = "--silent --show-error --max-time 20 --unix-socket /.hibernaut/api";
const CURL = `curl ${OPTIONS}`;
const ME = "http://platform/v1/apps/$HIBERNAUT_APP_NAME/machines/$HIBERNAUT_MACHINE_ID";

/** A machine whose app is this shell script. */
const machineOf = (script: string, config = {}): Promise<Machine> =>
  place.machine({ image, init: { cmd: ["-c", script] }, services: [], ...config });

const sh = (id: string, script: string, timeout = 30) =>
  place.client.runExec(place.app, id, { command: ["sh", "-c", script], timeout });

test("a script suspends its own machine, is resumed, and continues at the next line", async () => {
  const { machine_id: id } = await machineOf(`
    remembered=$(date +%N)
    echo $remembered > /tmp/before
    ${CURL} -X POST ${ME}/suspend > /tmp/reply
    echo $remembered > /tmp/after
    exec sleep 3600`);
  await place.reach(id, "suspended");
  await place.start(id);
  await expect.poll(async () => (await sh(id, "cat /tmp/after")).exit_code, { timeout: 30_000 }).toBe(0);
  const { stdout } = await sh(id, "cat /tmp/reply /tmp/before /tmp/after");
  const [reply, before, after] = stdout.replace("}", "}\n").trim().split("\n");
  expect(reply).toBe('{"ok":true}');
  expect(after).toBe(before);
  const asked = (await place.client.listMachineEvents(place.app, id)).find(({ type }) => type === "suspend");
  expect(asked?.details).toEqual({ by: "itself" });
});

describe("a machine whose programs ask", () => {
  let id: string;
  beforeAll(async () => {
    ({ machine_id: id } = await machineOf("exec sleep 3600"));
  });

  test("keeps itself awake for a while, and says why", async () => {
    const put = (ttl: number) =>
      sh(
        id,
        `${CURL} -X PUT -H 'content-type: application/json' -d '{"ttl":${ttl},"reason":"encoding"}' http://x/v1/keepalive`,
      );
    expect(JSON.parse((await put(120)).stdout)).toMatchObject({ ok: true, keep_awake: { reason: "encoding" } });
    const lease = (await place.get(id)).keep_awake;
    expect(lease?.reason).toBe("encoding");
    expect(Math.abs(Date.parse(lease?.until ?? "") - Date.now() - 120_000)).toBeLessThan(10_000);
    expect(JSON.parse((await put(1_000_000)).stdout)).toMatchObject({ error: "invalid_argument" });
    await sh(id, `${CURL} -X DELETE http://x/v1/keepalive`);
    expect((await place.get(id)).keep_awake).toBeNull();
    // It goes to sleep at once, and is woken at the time that it asked for.
    const wake = `${CURL} -X PUT -H 'content-type: application/json' -d '{"in":"5s"}' http://x/v1/wake`;
    await sh(id, `${wake} && ${CURL} -X POST ${ME}/suspend`);
    const woken = async () =>
      (await place.client.listMachineEvents(place.app, id)).filter(({ details }) => details["by"] === "wake");
    await expect.poll(woken, { timeout: 60_000 }).toHaveLength(1);
    await place.reach(id, "running");
  });

  test("reads, suspends and stops itself and nothing else; Fly's path works too", async () => {
    const { machine_id: other } = await place.client.createMachine(place.app, {
      config: { image, init: { cmd: ["-c", "exec sleep 3600"] } },
      skip_launch: true,
    });
    const calls = [
      ["GET", ME, 200],
      ["GET", `${ME}/events`, 200],
      ["GET", "http://x/v1/health", 200],
      ["GET", `http://x/v1/apps/$HIBERNAUT_APP_NAME/machines/${other}`, 403],
      ["POST", `http://x/v1/apps/$HIBERNAUT_APP_NAME/machines/${other}/suspend`, 403],
      ["POST", `http://x/v1/apps/elsewhere/machines/$HIBERNAUT_MACHINE_ID/stop`, 403],
      ["DELETE", ME, 403],
      ["POST", `${ME}/exec`, 403],
      ["GET", "http://x/v1/apps", 403],
      ["GET", "http://x/v1/tokens", 403],
      ["GET", "http://x/metrics", 403],
    ] as const;
    // One program for all of them: each takes an emulated guest as long as the requests of all.
    const requests = calls.map(([method, path]) => `${OPTIONS} -o /dev/null -w '%{http_code} ' -X ${method} ${path}`);
    const { stdout: statuses } = await sh(id, `curl ${requests.join(" --next ")}`);
    const answers = statuses.trim().split(" ").map(Number);
    expect(calls.map(([method, path], index) => [method, path, answers[index]])).toEqual(calls);
    const fly = "curl -s --max-time 20 --unix-socket /.fly/api http://x/v1/apps/$FLY_APP_NAME/machines/$FLY_MACHINE_ID";
    expect(JSON.parse((await sh(id, fly)).stdout)).toMatchObject({ machine_id: id, state: "running" });
    // The command ends with the machine, with or without having said so.
    await sh(id, `${CURL} -X POST ${ME}/stop`).catch((error: unknown) =>
      expect(error).toMatchObject({ code: "aborted" }),
    );
    await place.reach(id, "stopped");
  });
});

test("a program says when its machine is prepared: that ends a prewarm, and nothing else", {
  tags: "again",
}, async () => {
  const { machine_id: id, config } = await machineOf(
    `${CURL} -X POST http://x/v1/prepared > /tmp/reply; exec sleep 3600`,
  );
  const reply = async () => JSON.parse((await sh(id, "cat /tmp/reply")).stdout || "{}") as object;
  await expect.poll(reply, { timeout: 30_000 }).toEqual({ ok: true, prewarm: false });
  await place.suspend(id);
  await place.client.updateMachine(place.app, id, { ...config, env: { CHANGED: "1" } }, { prewarm: "prepared" });
  await place.client.waitForMachine(place.app, id, { state: ["prewarmed"], timeout: 60 });
  expect(await place.get(id)).toMatchObject({ state: "suspended", prewarm: { status: "done", until: "prepared" } });
  await place.start(id);
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume" });
  await expect.poll(reply, { timeout: 30_000 }).toEqual({ ok: true, prewarm: true });
});

test("an app hears of starts, gets ready for a suspend, and its event stream survives it; hooks run around it", {
  tags: "again",
  timeout: 2 * STARTS_MS,
}, async () => {
  // Answers every question after it wrote down that it was asked, with Node's own client.
  const app = `
    const http = require("http"), fs = require("fs");
    const note = (text) => fs.appendFileSync("/tmp/events", text + "\\n");
    http.get({ socketPath: "/.hibernaut/api", path: "/v1/events" }, (stream) => {
      let text = "";
      stream.on("close", () => note("closed"));
      stream.on("data", (chunk) => {
        text += chunk;
        for (let end; (end = text.indexOf("\\n\\n")) >= 0; text = text.slice(end + 2)) {
          const event = JSON.parse(text.slice(text.indexOf("data: ") + 6, end));
          note(event.kind + " " + (event.slept_ms ?? event.deadline_ms));
          if (event.kind === "suspend")
            http.request({ socketPath: "/.hibernaut/api", method: "POST", path: "/v1/events/" + event.id + "/ready" }).end();
        }
      });
    });
    setInterval(() => {}, 1000);`;
  const { machine_id: id } = await place.machine({
    image,
    init: { exec: ["node", "-e", app] },
    services: [],
    suspend_config: { timeout: 20 },
  });
  const hook = (folder: string, name: string, text: string) =>
    `mkdir -p /etc/hibernaut/hooks/${folder}; printf '#!/bin/sh\\n${text}\\n' > /etc/hibernaut/hooks/${folder}/${name}; ` +
    `chmod 755 /etc/hibernaut/hooks/${folder}/${name}; `;
  const made = await sh(
    id,
    hook("pre-suspend.d", "10-first", "echo pre >> /tmp/hooks") +
      hook("pre-suspend.d", "20-second", "echo pre-2 >> /tmp/hooks") +
      hook("post-resume.d", "10-tell", "echo post >> /tmp/hooks") +
      hook("post-resume.d", "20-fails", "exit 3"),
  );
  expect(made).toMatchObject({ exit_code: 0, stderr: "" });
  const events = async () => (await sh(id, "cat /tmp/events")).stdout.trim().split("\n");
  await expect.poll(events, { timeout: STARTS_MS }).toEqual(["cold 0"]);
  for (let cycle = 0; cycle < 2; cycle += 1) {
    await place.suspend(id);
    await place.start(id);
  }
  await expect
    .poll(async () => (await events()).map((line) => line.split(" ")[0]), { timeout: 30_000 })
    .toEqual(["cold", "suspend", "resume", "suspend", "resume"]);
  expect(await events()).toContain("suspend 20000");
  expect((await sh(id, "cat /tmp/hooks")).stdout).toBe("pre\npre-2\npost\npre\npre-2\npost\n");
  const [started] = await place.client.listMachineEvents(place.app, id, { limit: 1 });
  expect(started?.details).toMatchObject({ kind: "resume", hooks: "1 post-resume hook(s) failed" });
});
