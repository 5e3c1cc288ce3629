/** What other packages may use. */
export { passOnce } from "./pass-once.ts";
export { CheckResults } from "./results.ts";
export { CheckRunner } from "./runner.ts";
export { tellChecks } from "./tell.ts";
