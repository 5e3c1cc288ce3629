import { test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { withstand } from "./fuzz.ts";

test("wild requests: no 5xx, one shape of errors, no scope crossed", { timeout: 300_000 }, () => withstand(800, 18, 1));

test("many other ones", { timeout: 300_000, tags: "again" }, () => withstand(longOr(8000, 2000), 19));
