export { slowed, waitS } from "../../../../scripts/lib/slow.mjs";
