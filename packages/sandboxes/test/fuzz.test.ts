import { test } from "vitest";
import { longOr } from "../../platform/test/helpers/long.ts";
import { withstand } from "./fuzz.ts";

const LIMIT = { timeout: 300_000 };

test("wild requests: no fault, one form of errors, nothing of the host in them", LIMIT, () => withstand(800, 18));

test("many other ones", { ...LIMIT, tags: "again" }, () => withstand(longOr(8000, 2000), 19, { least: 3 }));
