/**
 * Someone works in a browser: a real platform and a real machine, spoken to with a cookie and an origin, as browsers do.
 *
 * @module-tag again
 */
import { once } from "node:events";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { Place, WARM } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const place = Place.forTests(WARM);

/** A browser: it keeps the cookie, and says which page it shows. */
class Browser {
  cookie = "";

  get origin(): string {
    return place.served.apiUrl;
  }

  async ask(method: string, path: string, body?: object) {
    const reply = await fetch(place.served.apiUrl + path, {
      method,
      headers: {
        ...(this.cookie !== "" && { cookie: this.cookie }),
        ...(method === "GET" ? { "hibernaut-page": "1" } : { origin: this.origin }),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const [cookie = ""] = (reply.headers.get("set-cookie") ?? "").split(";");
    if (cookie !== "") this.cookie = cookie;
    // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of it differs from step to step
    return { status: reply.status, body: (await reply.json()) as any };
  }

  /** Runs a command in the browser's console, and returns what it prints. */
  async run(machine: string, script: string): Promise<string> {
    const query = new URLSearchParams(["sh", "-c", script].map((word): [string, string] => ["command", word]));
    const url = `${this.origin.replace("http", "ws")}/v1/apps/${place.app}/machines/${machine}/exec?${query.toString()}`;
    const socket = new WebSocket(url, { headers: { cookie: this.cookie, origin: this.origin } });
    let printed = "";
    socket.on("message", (data: Buffer) => {
      if (data[0] === 1) printed += data.subarray(1).toString();
    });
    await once(socket, "close");
    return printed;
  }
}

test("signed in by a token, a browser works until the token is revoked", async () => {
  const config = { image: await shellImage(), init: { cmd: ["-c", "exec sleep 3600"] }, services: [] };
  const { id: machine } = await place.machine(config);
  const visitor = await place.client.createToken("visitor", { scopes: ["exec", "deploy"], apps: [place.app] });
  const browser = new Browser();
  expect((await browser.ask("GET", "/v1/session")).status).toBe(401);
  expect(await browser.ask("POST", "/v1/session", { token: visitor.token })).toMatchObject({
    status: 201,
    body: { token: { name: "visitor" }, scopes: ["exec", "deploy"], apps: [place.app] },
  });

  const path = `/v1/apps/${place.app}/machines/${machine}`;
  expect((await browser.ask("POST", `${path}/suspend`)).status).toBe(200);
  await place.reach(machine, "suspended");
  expect((await browser.ask("POST", `${path}/start`)).status).toBe(200);
  await place.reach(machine, "running");
  expect(await browser.run(machine, "echo from the console")).toBe("from the console\n");
  expect((await browser.ask("PATCH", `/v1/apps/${place.app}`, { status_page: true })).status).toBe(200);
  const page = await fetch(`${place.served.apiUrl}/status/${place.app}`);
  expect(await page.text()).toContain(">Up<");

  // The platform ends without a word; who is signed in stays so, and what the machine did is still known.
  await place.served.kill();
  await place.served.start();
  const chart = await browser.ask("GET", `/v1/timeline?hours=1&app=${place.app}`);
  expect(chart.status).toBe(200);
  const [{ spans, wakes }] = chart.body.machines;
  expect(spans.map(({ state }: { state: string }) => state).join(" ")).toMatch(
    /^(stopped )?running (warm|suspended|suspended warm|warm suspended|suspended warm suspended) running$/,
  );
  expect(wakes).toMatchObject([{ kind: "cold" }, { kind: "warm" }]);
  expect((await browser.ask("GET", "/v1/platform/host")).status).toBe(403);

  await place.client.revokeToken(visitor.id);
  expect(await browser.ask("POST", `${path}/suspend`)).toMatchObject({
    status: 401,
    body: { error: "unauthenticated", message: expect.stringContaining("Sign in again") },
  });
  expect((await place.get(machine)).state).toBe("running");
});

test("an admin sees in the browser what the host has, and what doctor finds there", async () => {
  const browser = new Browser();
  await browser.ask("POST", "/v1/session", { token: await place.token() });
  const host = await browser.ask("GET", "/v1/platform/host");
  expect(host.body).toMatchObject({
    versions: { qemu: expect.stringMatching(/^\d+\.\d+/), node: process.versions.node },
    warm: { machines: 0 },
  });
  expect(host.body.disk.free_bytes).toBeGreaterThan(0);
  const { body } = await browser.ask("GET", "/v1/platform/doctor");
  const names = body.findings.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(["node", "qemu", "disk", "guest bundle", "accelerator", "snapshots"]));
  expect(body.findings.filter(({ level }: { level: string }) => level === "error")).toEqual([]);
});
