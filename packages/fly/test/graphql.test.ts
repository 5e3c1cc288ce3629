/** What flyctl asks by GraphQL before, and next to, the Machines API, and how it is refused what has no meaning here. */
import { expect, test } from "vitest";
import { startFly, type TestFly } from "./helpers.ts";

interface Reply {
  data: Record<string, never> | null;
  errors?: { message: string; path: string[]; extensions: { code: string } }[];
}

const asking =
  ({ call }: TestFly) =>
  async (query: string, variables?: object | null): Promise<Reply> => {
    const { status, body } = await call<Reply>("POST", "/graphql", { query, variables });
    expect([query, status]).toEqual([query, 200]);
    return body;
  };

async function shop() {
  const fly = await startFly();
  await fly.call("POST", "/v1/apps", { name: "shop" });
  const config = { image: "app:1", guest: { cpus: 1, memory_mb: 256 } };
  const { body } = await fly.call<{ id: string }>("POST", "/v1/apps/shop/machines", { name: "one", config });
  return { ...fly, id: body.id, ask: asking(fly) };
}

test("an app is answered with the fields that were asked for, by the names that were", async () => {
  const { ask } = await shop();
  const query = `query ($appName: String!) {
    appcompact:app(name: $appName) {
      id internalNumericId name deployed status platformVersion network
      organization { id internalNumericId slug paidPlan }
      postgresAppRole: role { name }
      hostIssues { nodes { internalId message } }
      currentRelease: currentReleaseUnprocessed { version }
    }
  }`;
  const { data } = await ask(query, { appName: "shop" });
  expect(data).toEqual({
    appcompact: {
      ...{ id: "shop", internalNumericId: expect.any(Number), name: "shop", deployed: true, status: "deployed" },
      ...{ platformVersion: "machines", network: "default", postgresAppRole: null, currentRelease: null },
      organization: { id: "personal", internalNumericId: "1", slug: "personal", paidPlan: true },
      hostIssues: { nodes: [] },
    },
  });
  expect(await ask('{ app(name: "none") { id } }')).toMatchObject({
    data: null,
    errors: [{ message: 'Could not find App "none"', path: ["app"], extensions: { code: "NOT_FOUND" } }],
  });
});

test("lists of apps come in one page, whether or not one is asked for after another", async () => {
  const { ask } = await shop();
  const query = `query($org: ID, $after: String) {
    apps(type: "container", first: 200, after: $after, organizationId: $org) {
      pageInfo { hasNextPage endCursor }
      nodes { name network currentRelease { createdAt } organization { slug name } }
    }
  }`;
  const organization = { slug: "personal", name: "personal" };
  const nodes = [{ name: "shop", network: "default", currentRelease: null, organization }];
  const pageInfo = { hasNextPage: false, endCursor: null };
  for (const variables of [undefined, null, {}, { org: null, after: null }, { org: "personal" }])
    expect((await ask(query, variables)).data).toEqual({ apps: { pageInfo, nodes } });
  expect((await ask(query, { org: "acme" })).data).toEqual({ apps: { pageInfo, nodes: [] } });
});

test("a machine that is named without its app is found, and its app with it", async () => {
  const { ask, id } = await shop();
  const query =
    "query ($machineId: String!) { gqlmachine:machine(machineId: $machineId) { id name app { name organization { slug } } } }";
  const app = { name: "shop", organization: { slug: "personal" } };
  expect((await ask(query, { machineId: id })).data).toEqual({ gqlmachine: { id, name: "one", app } });
  expect((await ask(query, { machineId: "0".repeat(14) })).errors?.[0]?.message).toContain("Could not find Machine");
  const { data } = await ask("{ app(name: shop) { machines { totalCount nodes { id state config } } } }");
  expect(data).toMatchObject({ app: { machines: { totalCount: 1, nodes: [{ id, config: { image: "app:1" } }] } } });
});

test("an image is taken as it is said, and the organisation and the region are the ones that there are", async () => {
  const { ask } = await shop();
  const image = `query ($appName: String!, $imageRef: String!) {
    app(name: $appName) { id image(ref: $imageRef) { id digest ref compressedSize: compressedSizeFull manifest } }
  }`;
  const ref = "oci:/srv/notes:latest";
  expect((await ask(image, { appName: "shop", imageRef: ref })).data).toEqual({
    app: { id: "shop", image: { id: ref, digest: "", ref, compressedSize: "0", manifest: null } },
  });
  const organization = `
    query Organizations($admin: Boolean!) { organizations(admin: $admin) { nodes { ...Owner viewerRole } } }
    fragment Owner on Organization { slug rawSlug type billable addOns(type: tigris) { nodes { ... on AddOn { id } } } }`;
  const owner = { slug: "personal", rawSlug: "personal", type: "PERSONAL", billable: true, addOns: { nodes: [] } };
  expect((await ask(organization, { admin: false })).data).toEqual({
    organizations: { nodes: [{ ...owner, viewerRole: "admin" }] },
  });
  expect((await ask('{ organization(slug: "acme") { id } }')).errors?.[0]?.message).toContain("there is one");
  expect(
    (await ask("{ nearestRegion { code name } platform { requestRegion regions { code latitude } } }")).data,
  ).toEqual({
    nearestRegion: { code: "local", name: "local" },
    platform: { requestRegion: "local", regions: [{ code: "local", latitude: null }] },
  });
  expect((await ask('{ latestImageDetails(image: "app:1") { tag } }')).errors?.[0]?.message).toContain(
    "Unknown repository app:1",
  );
});

test.each([
  ["a change", "mutation($input: X!) { createApp(input: $input) { app { id } } }", /^GraphQL changes nothing here/],
  ["what is not kept", "{ currentUser { email } }", /^"currentUser" of a query is not answered here/],
  ["what an app has elsewhere", "{ app(name: shop) { secrets { name } } }", /^"secrets" of app is not answered here/],
  ["what every object has", "{ app(name: shop) { __proto__ { x } } }", /^"__proto__" of app/],
  ["a field of a plain value", "{ app(name: shop) { name { first } } }", /^name is a plain value/],
  ["an app without fields", "{ app(name: shop) }", /^app is not a plain value/],
  ["more requests than any command needs", manyOf("nearestRegion { code }", 110), /too much at once/],
])("%s is refused in words", async (_what, query, words) => {
  const { ask } = await shop();
  const { data, errors } = await ask(query);
  expect(data).toBeNull();
  expect(errors?.[0]?.message).toMatch(words);
});

function manyOf(field: string, count: number): string {
  return `{ ${Array.from({ length: count }, (_, at) => `a${at}: ${field}`).join(" ")} }`;
}
