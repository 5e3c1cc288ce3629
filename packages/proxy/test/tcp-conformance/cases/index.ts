/** All cases, by how the proxy is set up. */
import type { Case, Mode } from "../case.ts";
import { BALANCED, TELLS_V1, TELLS_V2 } from "./balancers.ts";
import { PASSTHROUGH } from "./passthrough.ts";
import { TERMINATE } from "./terminate.ts";

export const THEMES: readonly { mode: Mode; cases: readonly Case[] }[] = [
  { mode: "passthrough", cases: PASSTHROUGH },
  { mode: "terminate", cases: TERMINATE },
  { mode: "balanced", cases: BALANCED },
  { mode: "tells v1", cases: TELLS_V1 },
  { mode: "tells v2", cases: TELLS_V2 },
];
