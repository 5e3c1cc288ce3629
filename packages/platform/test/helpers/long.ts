export { longOr } from "../../../../scripts/lib/long.mjs";
