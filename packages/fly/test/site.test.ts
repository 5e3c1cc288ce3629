/** What flyctl asks Fly's website around `machine run` and `machine update --image`. */
import { expect, test } from "vitest";
import { imageRef } from "../src/view/image-ref.ts";
import { startFly } from "./helpers.ts";

test("the organisation is there, and a note of how an image was found is taken", async () => {
  const { call } = await startFly();
  const organization = {
    id: "personal",
    slug: "personal",
    raw_slug: "personal",
    internal_numeric_id: 1,
    paid_plan: true,
  };
  expect(await call("GET", "/api/v1/organizations?admin=false")).toMatchObject({
    status: 200,
    body: { organizations: [organization] },
  });
  expect(await call("GET", "/api/v1/organizations/personal")).toMatchObject({ status: 200, body: { organization } });
  expect(await call("GET", "/api/v1/organizations/acme")).toMatchObject({
    status: 404,
    body: { error: expect.stringContaining("organization not found") },
  });
  const sent = { app_name: "shop", builder_type: "remote", strategies_available: ["Remote Image Reference"] };
  expect(await call("POST", "/api/v1/builds", sent)).toMatchObject({ status: 200, body: { id: 0 } });
  const done = { build_id: 0, app_name: "shop", status: "completed", final_image: { tag: "app:1" }, logs: "" };
  expect(await call("POST", "/api/v1/builds/finish", done)).toMatchObject({
    status: 200,
    body: { status: "completed" },
  });
  expect(await call("GET", "/api/v1/organizations", undefined, { authorization: "Bearer no" })).toMatchObject({
    status: 401,
  });
});

/** As clients do before they clone a machine. */
function putTogether(ref: string, digest: string): string {
  const { registry, repository, tag, digest: pin } = imageRef({ ref, digest });
  return `${registry}/${repository}${tag && `:${tag}`}${pin && `@${pin}`}`;
}

const DIGEST = `sha256:${"a".repeat(64)}`;

test.each([
  ["oci:/srv/notes:latest", `oci:/srv/notes:latest@${DIGEST}`],
  ["oci:/srv/notes", `oci:/srv/notes@${DIGEST}`],
  ["oci-archive:app.tar", `oci-archive:./app.tar@${DIGEST}`],
  ["docker-archive:files/app.tar:shop:1", `docker-archive:files/app.tar:shop:1@${DIGEST}`],
  ["docker-daemon:app:1", `docker-daemon:docker.io/app:1@${DIGEST}`],
  ["docker-daemon:ghcr.io/acme/app:1", `docker-daemon:ghcr.io/acme/app:1@${DIGEST}`],
  [`upload:shop:latest@${DIGEST}`, `upload:docker.io/shop:latest@${DIGEST}`],
  ["redis:7", `docker.io/redis:7@${DIGEST}`],
  ["redis", `docker.io/redis:latest@${DIGEST}`],
  ["localhost:5000/a/b:2", `localhost:5000/a/b:2@${DIGEST}`],
])("an image of %s is still that one after a client has put its parts together", (ref, whole) => {
  expect(putTogether(ref, DIGEST)).toBe(whole);
});
