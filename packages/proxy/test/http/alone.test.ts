/** The engine as someone uses it who has nothing else of Hibernaut: the README's program, in a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";

const PACKAGE = join(import.meta.dirname, "../..");

test("the program in the README forwards a request, and its response", async () => {
  const app = createServer((request, response) => response.end(`${request.method} ${request.url}`)).listen(
    0,
    "127.0.0.1",
  );
  onTestFinished(() => void app.close());
  await once(app, "listening");
  const code = /^```js\n(.*?)^```/ms.exec(await readFile(join(PACKAGE, "src/http/README.md"), "utf8"))?.[1] ?? "";
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    cwd: PACKAGE,
    env: { ...process.env, PORT: String((app.address() as AddressInfo).port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill());
  const [port] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const response = await fetch(`http://127.0.0.1:${port}/teas?size=2`, { method: "PUT" });
  expect([response.status, await response.text(), response.headers.get("hibernaut-wake")]).toEqual([
    200,
    "PUT /teas?size=2",
    "running; dur=0",
  ]);
});
