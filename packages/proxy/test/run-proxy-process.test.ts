/** A proxy in a process of its own that cannot do what its settings say. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { readSettings } from "@hibernaut/settings";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { runProxyProcess } from "../src/run-proxy-process.ts";

test("does not start where its metrics' port is taken, and says which setting to change", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void taken.close());
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  const folder = await tempFolder("proxy");
  const settings = readSettings({
    HIBERNAUT_DATA_DIR: folder,
    XDG_CONFIG_HOME: folder,
    HIBERNAUT_LOG_LEVEL: "silent",
    HIBERNAUT_PROXY_LISTEN: "127.0.0.1:0",
    HIBERNAUT_PROXY_METRICS_LISTEN: `127.0.0.1:${port}`,
  });
  let isReady = false;
  const running = runProxyProcess({
    version: "1.2.3",
    settings,
    signal: new AbortController().signal,
    onReady: () => (isReady = true),
  });
  await expect(running).rejects.toMatchObject({
    code: "unavailable",
    message: `The proxy's metrics cannot listen on 127.0.0.1:${port}: another program is listening there. Set HIBERNAUT_PROXY_METRICS_LISTEN to another host:port.`,
  });
  expect(isReady).toBe(false);
});
