/** What a refused start says when machines belong to another network than the one it would have. */
import { parseSubnet } from "@hibernaut/lib/ipv4";
import { expect, test } from "vitest";
import type { KnownMachine } from "../src/contract.ts";
import { type Present, strandedNotes } from "../src/stranded.ts";

const machine = (address: string, memory?: KnownMachine["memory"]): KnownMachine => ({
  id: address,
  app: "shop",
  address,
  ...(memory && { memory }),
});
const onBridge = [machine("10.213.0.2", "asleep"), machine("10.213.0.3", "asleep"), machine("10.213.0.4")];

function notes(machines: KnownMachine[], present: Partial<Present>): string[] {
  return strandedNotes(machines, {
    mode: "bridge",
    modeSetting: "auto",
    subnet: "10.213.4.0/22",
    subnetSetting: "auto",
    owns: () => false,
    ...present,
  });
}

test("there is no note when all sleeping machines fit, or when none has memory to lose", () => {
  expect(notes(onBridge, { owns: () => true })).toEqual([]);
  expect(notes([machine("10.213.0.2"), machine("127.16.0.1")], {})).toEqual([]);
});

const taken = (device: string) => ({ subnet: parseSubnet("10.213.0.0/22") ?? { base: 0, prefix: 0 }, device });

test.each<[what: string, present: Partial<Present>, why: string, way: string]>([
  ["an interface of the host", { taken: taken("eth1") }, "but eth1 has that subnet", "remove the subnet from eth1"],
  ["a route of the host", { taken: taken("") }, "but a route of the host has", "remove that route"],
  [
    "an unknown platform",
    { taken: taken("hib3fa29c") },
    "of another platform has",
    "make sure that nobody needs that platform, then run `hibernaut uninstall --keep-link` with its",
  ],
  [
    "a platform that may be someone else's",
    { taken: { ...taken("hib3fa29c"), folder: "/srv/theirs" } },
    "of the platform on /srv/theirs has",
    "make sure that nobody needs that platform, as when this directory is a copy of it, then run `HIBERNAUT_DATA_DIR=/srv/theirs ",
  ],
  ["the setting", { subnetSetting: "10.99.0.0/22" }, "HIBERNAUT_NETWORK_SUBNET is 10.99.0.0/22 now", "or to auto"],
  ["a lost network.json", {}, "the current one is 10.213.4.0/22", "set HIBERNAUT_NETWORK_SUBNET to theirs"],
  [
    "machines of both modes",
    { mode: "user" },
    "but the other machines belong to the user-mode network",
    "set HIBERNAUT_NETWORK=bridge, which costs the others theirs",
  ],
  ["the mode", { mode: "user", modeSetting: "user" }, "HIBERNAUT_NETWORK is user now", "set HIBERNAUT_NETWORK=auto"],
])("a note says how many machines, why, and how to keep their memory: %s", (_what, present, why, way) => {
  const [note = "", ...more] = notes(onBridge, present);
  expect(more).toEqual([]);
  expect(note).toMatch(
    /^2 sleeping machines belong to .*: 10\.213\.0\.2, 10\.213\.0\.3\. Each would lose its memory \(network_changed\)\. /,
  );
  expect(note).toContain(why);
  expect(note.split("To keep it, ")[1]).toContain(way);
});

test("machines of both network modes get separate notes", () => {
  const both = notes([...onBridge, machine("127.16.0.1", "asleep")], { taken: taken("eth1") });
  expect(both).toEqual([
    expect.stringMatching(
      /^1 sleeping machine belongs to the user-mode network.* set HIBERNAUT_NETWORK=user, and start/,
    ),
    expect.stringMatching(/^2 sleeping machines belong to 10\.213\.0\.0\/22/),
  ]);
});
