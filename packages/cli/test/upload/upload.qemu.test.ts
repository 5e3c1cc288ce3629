/**
 * A deploy of an archive from another machine, to a platform that is killed in the middle, until a request is answered.
 *
 * @module-tag again
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { addLayer, skopeo, temporaryFolder } from "../../../images/test/fixtures.ts";
import { ask } from "../../../platform/test/helpers/proxied.ts";
import { Place } from "../../../platform/test/helpers/served.ts";
import { SMALL_APP } from "../../../platform/test/helpers/small-app/image.ts";
import { runCli } from "../real-cli.ts";
import { throttled } from "./throttled.ts";

const LAYER_BYTES = 6_000_000;

const place = Place.forTests();

test("an archive is deployed with --upload, although the platform is killed meanwhile", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const layout = join(folder, "app");
  await skopeo("copy", "--quiet", SMALL_APP, `oci:${layout}:latest`);
  await addLayer(folder, layout, "big", LAYER_BYTES);
  await skopeo("copy", "--quiet", `oci:${layout}:latest`, `docker-archive:${join(folder, "app.tar")}:me/app:v1`);
  await writeFile(join(folder, "hibernaut.toml"), `app = "${place.app}"\n[http_service]\n  internal_port = 8080\n`);
  const deploy = ["deploy", "--image", "docker-archive:./app.tar", "--upload"];

  const line = await throttled(place.served.apiUrl);
  onTestFinished(() => line.close());
  const more = { HIBERNAUT_API_URL: line.url, HIBERNAUT_API_TOKEN: await place.token() };
  const first = runCli(place, deploy, { cwd: folder, more });
  await expect.poll(line.bytes, { timeout: 60_000, interval: 5 }).toBeGreaterThan(LAYER_BYTES / 2);
  await place.served.kill();
  // At another port, so the first deploy finds nothing any more, and says so.
  await place.served.start();
  expect(await first).toMatchObject({ code: 1, err: expect.stringContaining("The platform does not answer at") });
  const [open] = await place.client.listUploads();
  expect(open?.done_bytes).toBeGreaterThan(LAYER_BYTES / 4);

  const { code, err } = await runCli(place, deploy, { cwd: folder });
  expect(code, err).toBe(0);
  const [uploaded] = await place.client.listMachines(place.app);
  expect(uploaded).toMatchObject({
    state: "running",
    image: { ref: expect.stringMatching(/^upload:me\/app:v1@sha256:/) },
  });
  const answer = await ask({ proxyUrl: place.proxyUrl, app: place.app });
  expect(JSON.parse(answer.text), answer.text).toMatchObject({ count: 1 });
});
