/** What is said about backups and offered for them, as pure rules. */
import { execFileSync } from "node:child_process";
import type { BackupTarget, Session } from "@hibernaut/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { backupProblemsOf } from "../src/data/problems.ts";
import { isUnlimited } from "../src/data/rights.ts";
import { appCommand, platformCommand, restorableApps, shellWord } from "../src/pages/backups/commands.ts";
import { beginRefusal, cancelRefusal, countText, machineText, sizeText } from "../src/pages/backups/words.ts";
import { drill, last, target } from "./a-target.ts";

const session = (...scopes: Session["scopes"]) => ({ scopes });
const running = (phase: NonNullable<BackupTarget["running"]>["phase"]) => ({
  phase,
  started_at: "2026-01-31T03:00:00Z",
});
const error = (message: string, code = "internal") => ({ code, message });
const titles = (...targets: BackupTarget[]) =>
  backupProblemsOf(targets).map(({ title, level }) => `${level}: ${title}`);

describe("what fails now", () => {
  test("has nothing of targets that are well, or that were never used", () => {
    expect(titles(target(), target({ drills: [drill({})] }), target({ last: null, last_success: null }))).toEqual([]);
  });

  test("has every backup that is overdue or failed, and not twice", () => {
    const failed = last({ state: "failed", error: error("the disk is full") });
    expect(titles(target({ overdue: true }))).toEqual(["error: The backup is overdue"]);
    expect(titles(target({ last: failed }))).toEqual(["error: The latest backup failed"]);
    const both = backupProblemsOf([target({ overdue: true, last: failed })]);
    expect(both).toMatchObject([{ title: "The backup is overdue", detail: "the disk is full" }]);
    expect(both[0]).toMatchObject({ subject: "Backups to nas", to: { page: "backups" } });
    expect(titles(target({ last: last({ state: "canceled", error: error("It was canceled.") }) }))).toEqual([]);
  });

  test("has every drill that failed, and what else went wrong", () => {
    const drills = [
      drill({}),
      drill({ app_name: "blog", error: error("no") }),
      drill({ app_name: "", error: error("no") }),
    ];
    expect(titles(target({ drills }))).toEqual(["error: The drill of blog failed", "error: A drill failed"]);
    const failed_commands = [{ machine_id: "a1", app_name: "shop", reason: "exit code 3" }];
    const poor = target({
      last: last({ failed_commands }),
      last_check: { at: "2026-01-31T03:00:00Z", read_data: true, error: error("damaged") },
      prune_error: "locked",
    });
    expect(titles(poor)).toEqual([
      "error: The latest check failed",
      "warning: Old backups could not be deleted",
      "warning: A backup command failed",
    ]);
    expect(backupProblemsOf([poor]).at(-1)?.detail).toBe("shop: exit code 3");
  });

  test("names each of them differently", () => {
    const bad = { overdue: true, prune_error: "locked" };
    const keys = backupProblemsOf([target(bad), target({ ...bad, name: "usb" })]).map(({ key }) => key);
    expect(new Set(keys).size).toBe(4);
  });
});

describe("actions", () => {
  test("need an admin, and a platform that does no such work already", () => {
    const busy = [target(), target({ name: "usb", running: running("drilling") })];
    expect(beginRefusal([target()], session("admin"))).toBeUndefined();
    expect(beginRefusal([target()], session("deploy"))).toBe("This needs a token with the scope admin.");
    expect(beginRefusal(busy, session("admin"))).toContain("Wait until that at usb has ended");
  });

  test("only what runs and does not count yet can be canceled", () => {
    const refusal = (one: BackupTarget) => cancelRefusal(one, session("admin"));
    expect(refusal(target())).toBe("Nothing runs at this target.");
    expect(refusal(target({ running: running("checking") }))).toBeUndefined();
    expect(refusal(target({ running: running("deleting") }))).toContain("counts already");
    expect(cancelRefusal(target({ running: running("checking") }), session("read"))).toContain("scope admin");
  });

  test("the page is for tokens of all apps", () => {
    expect([null, ["shop"], []].map((apps) => isUnlimited({ apps }))).toEqual([true, false, false]);
  });
});

describe("words", () => {
  test("a count has what it was before, and why it is not good enough", () => {
    const count = { machine: "web", name: "orders", value: 1200, minimum: 1000, before: 1150, note: null };
    expect(countText(count)).toBe("orders in web: 1,200, at least 1,000, 1,150 in the drill before");
    expect(countText({ ...count, before: null })).toBe("orders in web: 1,200, at least 1,000");
    expect(countText({ ...count, value: null, note: "it printed nothing" })).toContain(
      "orders in web: it printed nothing",
    );
  });

  test("a machine says how it came up, or why it did not", () => {
    const machine = { from: "a1", name: "web", start: "resume", health: "healthy" as const, took_ms: 3100, note: null };
    expect(machineText(machine)).toBe("web: healthy after 3.1 s (resume)");
    expect(machineText({ ...machine, health: "failed", note: "it exited" })).toBe("web: failed, it exited");
    expect(machineText({ ...machine, health: "stopped", start: null, took_ms: null })).toBe("web: stopped");
  });

  test("a backup that does not count has no size", () => {
    expect(sizeText(last({}))).toBe("2 KB, 1 KB of it new");
    expect(sizeText(last({ state: "failed", bytes: 0 }))).toBeUndefined();
  });
});

describe("commands to copy", () => {
  test("restore an app from one backup, as a copy or in its place", () => {
    const from = { target: "nas", set: "20260131T030000Z-0a1b2c" };
    const begin = "hibernaut backup restore --app shop --target nas --set 20260131T030000Z-0a1b2c";
    expect(appCommand(from, "shop", "copy")).toBe(`${begin} --as shop-restored`);
    expect(appCommand(from, "shop", "in place")).toBe(`${begin} --in-place`);
    expect(appCommand(from, "x".repeat(63), "copy").split(" --as ")[1]).toHaveLength(63);
  });

  test("restore everything, with what the place needs", () => {
    expect(platformCommand({ url: "/mnt/my disk", kind: "directory" }, "s")).toBe(
      "hibernaut backup restore '/mnt/my disk' --set s --key-file key.txt --data /srv/hibernaut",
    );
    expect(platformCommand({ url: "sftp://b@nas/srv", kind: "sftp" }, "s")).toContain(" --ssh-key id_backup ");
  });

  test("what others wrote into a backup is one word to a shell, and no app of that name is offered", () => {
    expect(restorableApps({ apps: ["shop", "x; rm -rf ~", "--in-place", "a\u001b[2J"] })).toEqual(["shop"]);
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("'", '"', "\\", "$", "`", ";", " ", "\n", "!", "a", "é") }),
        (text) => {
          const echoed = execFileSync("sh", ["-c", `printf %s ${shellWord(text)}`], { encoding: "utf8" });
          expect(echoed).toBe(text);
        },
      ),
      { numRuns: 40 },
    );
  });
});
