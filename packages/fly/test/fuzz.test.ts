import { test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { withstand } from "./fuzz.ts";

test("wild requests: no 5xx without a reason, one shape of errors", { timeout: 300_000 }, () => withstand(800, 34, 10));

test("many other ones", { timeout: 3_600_000, tags: "again" }, () => withstand(longOr(100_000, 2000), 35, 20));
