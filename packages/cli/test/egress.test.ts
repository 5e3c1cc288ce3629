/** Rules for what machines connect to, from the command line and from an app file. */
import { expect, test } from "vitest";
import { machineConfigs } from "../src/appfile/machine-configs.ts";
import { readAppFile } from "../src/appfile/read.ts";
import { freshCli } from "./helpers.ts";

const cli = freshCli();

test("rules are shown, set and removed, and refused with what to do where nothing would keep them", {
  tags: "again",
}, async () => {
  await cli.hibernaut(["machine", "run", "app:1", "--name", "web-1"]);
  const shown = await cli.hibernaut("machine egress web-1");
  expect(shown.stdout).toMatch(/^Machine \w+ may connect wherever the network lets machines\.$/m);
  // These machines are on the user-mode network, which has no rules.
  const set = await cli.hibernaut(["machine", "egress", "web-1", "--default", "deny", "--allow", "api.example.com"]);
  expect(set).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/HIBERNAUT_NETWORK=bridge, or remove the rules/),
  });
  const wrong = await cli.hibernaut(["machine", "egress", "web-1", "--allow", "api.example.com"]);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringMatching(/Set `default` to deny/) });
  expect((await cli.hibernaut("machine egress web-1 --clear")).code).toBe(0);
  expect((await cli.hibernaut("machine egress web-1 --clear --deny 10.0.0.0/8")).code).toBe(2);
});

test("an app file has them for all machines of the app", () => {
  const { file } = readAppFile(`
    app = "shop"
    [build]
    image = "app:1"
    [network.egress]
    default = "deny"
    allow = ["*.example.com", "192.0.2.0/24"]`);
  const [group] = [...machineConfigs(file ?? ({} as never)).values()];
  expect(group?.config.network).toEqual({ egress: { default: "deny", allow: ["*.example.com", "192.0.2.0/24"] } });
});
