/** What E2B's own tests say about us, and what they do not. */
import { expect, test } from "vitest";
import { judge, page, readJunit, readReport } from "../suite/rules.mjs";

const FILE = "tests/sandbox/files/read.test.ts";
const ran = (name: string, state: "passed" | "failed" | "skipped" = "passed") => ({
  name: `${FILE} > ${name}`,
  state,
  why: "",
});
const dead = (name: string) => ran(name, "failed");

test("what passes without a platform does not count, and what fails needs a reason", () => {
  const live = [
    ran("needs us"),
    ran("needs nobody"),
    dead("asks the internet"),
    dead("is broken"),
    ran("other", "skipped"),
  ];
  const control = [dead("needs us"), ran("needs nobody"), dead("asks the internet"), dead("is broken")];
  const exceptions = [
    { test: `${FILE} > asks the internet`, why: "the internet" },
    { test: "tests/gone.test.ts", why: "the internet" },
  ];
  const verdict = judge(live, control, exceptions);
  expect(verdict).toMatchObject({ counted: 3, passed: 1, needless: ["tests/gone.test.ts"], isGood: false });
  expect(verdict.failed.map(({ name }) => name)).toEqual([`${FILE} > is broken`]);
  expect(page(verdict, { title: "t", sdk: "s", version: "1", command: "c", date: "d" })).toContain(
    "| sandbox/files | 3 | 1 | 1 | 1 |",
  );
});

test("exceptions do not make up for less than 95 %", () => {
  const live = Array.from({ length: 20 }, (_, index) => (index < 18 ? ran(`${index}`) : dead(`${index}`)));
  const control = live.map(({ name }) => ({ name, state: "failed" as const, why: "" }));
  expect(judge(live, control, [{ test: FILE, why: "all" }]).isGood).toBe(false);
  // What needs the internet says nothing about us.
  expect(judge(live, control, [{ test: FILE, why: "all", internet: true }]).isGood).toBe(true);
  expect(judge(live.slice(1), control, [{ test: FILE, why: "all" }]).passed).toBe(17);
  expect(judge(live.with(18, ran("18")), control, [{ test: FILE, why: "all" }]).isGood).toBe(true);
});

test("a file that cannot be loaded has failed", () => {
  const testResults = [{ name: `/x/${FILE}`, status: "failed", message: "no such package\nat", assertionResults: [] }];
  const [one] = readReport(JSON.stringify({ testResults }), "/x");
  expect(one).toMatchObject({ state: "failed", why: "no such package" });
});

test("a report of pytest names files and tests, and why they fail", () => {
  const file = 'classname="tests.sync.test_run" file="tests/sync/test_run.py"';
  const text = `<testsuites><testsuite>
<testcase ${file} name="test_ok" time="1" />
<testcase ${file} name="test_fails[&lt;a&gt;]"><failure message="assert 1 == &quot;2&quot;&#10;more">long</failure></testcase>
<testcase ${file} name="test_ok_but"></testcase>
<testcase ${file} name="test_ok_but"><error message="failed on teardown">x</error></testcase>
<testcase ${file} name="test_skipped"><skipped type="pytest.skip" message="not here">x</skipped></testcase>
</testsuite></testsuites>`;
  expect(readJunit(text).map(({ name, state, why }) => [name.slice(23), state, why])).toEqual([
    ["> test_ok", "passed", ""],
    ["> test_fails[<a>]", "failed", 'assert 1 == "2"'],
    ["> test_ok_but", "failed", "failed on teardown"],
    ["> test_skipped", "skipped", "not here"],
  ]);
});
